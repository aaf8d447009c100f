/** What a rule of `allow` or `map` says of volumes whose group on disk is a group of the system. */
export interface SystemGroupRule {
  /** True: such a volume is mapped, even where users of the node reach it through a mount without nosuid. */
  systemGroups?: boolean | undefined
  /** Numbers and ranges of groups that are protected in addition to those below 1000. */
  protectedGroups?: readonly string[] | undefined
}
