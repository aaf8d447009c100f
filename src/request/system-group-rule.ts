/** The part of an `allow` or `map` rule that concerns volumes whose group on disk is a system group. */
export interface SystemGroupRule {
  /** True: such a volume is mapped, even where users of the node reach it through a mount without nosuid. */
  systemGroups?: boolean | undefined
  /** Numbers and ranges of groups that are protected in addition to those below 1000. */
  protectedGroups?: readonly string[] | undefined
}
