/** Ways to a volume's group, in the order of the chart's lines. */
export const WAYS = [
  'modekeep nri',
  'modekeep idmap, ready worker',
  'modekeep keep, ready worker',
  'modekeep keep, own process',
  "kubelet's walk",
] as const
export type Way = (typeof WAYS)[number]

/** Of a whole run. */
export interface FirstMounts {
  machine: Record<string, string>
  /** Milliseconds of each round, of one way on a volume of so many files. */
  times: { way: Way; files: number; milliseconds: number[] }[]
}
