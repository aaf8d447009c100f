/** What a code means to an operator. Texts have Markdown's backticks around what is typed. */
export interface FaultEntry {
  readonly meaning: string
  readonly cause?: string
  readonly remedy: string
  /** Page of docs/ that describes the topic, with an anchor. */
  readonly see?: string
}
