/** Whether what is told is to be JSON: also of arguments that are wrong. */
export function isJsonRequested(argv: readonly string[]): boolean {
  const isForm = (word: string, at: number) => word === 'json' && /^(-o|--format)$/.test(argv[at - 1] ?? '')
  return argv.includes('--json') || argv.some((word, at) => isForm(word, at) || /^(-o=?|--format=)json$/.test(word))
}
