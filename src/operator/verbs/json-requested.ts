/** True if the output is JSON. Invalid arguments are searched too, because their error is printed in the same form. */
export function isJsonRequested(argv: readonly string[]): boolean {
  const isForm = (word: string, at: number) => word === 'json' && /^(-o|--format)$/.test(argv[at - 1] ?? '')
  return argv.includes('--json') || argv.some((word, at) => isForm(word, at) || /^(-o=?|--format=)json$/.test(word))
}
