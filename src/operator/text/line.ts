/** One line without its end; control characters in it are still to be made printable. */
export interface Line {
  text: string
  style?: 'strong' | 'notice' | 'fault'
}
