/** A command of a page, and what it prints there. */
export interface Step {
  command: string
  /** Undefined for what the page does not show: a line `<!-- stage: COMMAND -->`. */
  shown: string | undefined
}

export interface Session {
  heading: string
  steps: Step[]
}

/** The commands of a page by second-level sections, each of which begins with a fresh node. */
export function sessionsOf(page: string): Session[] {
  const sections = page.split(/^(?=## )/m).slice(1)
  return sections.map((section) => ({ heading: /^## (.*)$/m.exec(section)?.[1] ?? '', steps: stepsOf(section) }))
}

const PART = /^<!-- stage: (.*) -->$|^```console\n([\s\S]*?)^```$/gm

function stepsOf(section: string): Step[] {
  return [...section.matchAll(PART)].flatMap(([, hidden, block]) =>
    hidden === undefined ? shownSteps(block ?? '') : [{ command: hidden, shown: undefined }],
  )
}

/** A line with "# " in front is typed; one that ends in a backslash goes on. */
function shownSteps(block: string): Step[] {
  return block
    .split(/^# /m)
    .slice(1)
    .map((text) => {
      const [, command = '', shown = ''] = /^((?:.*\\\n)*.*)\n?([\s\S]*)$/.exec(text) ?? []
      return { command, shown }
    })
}

const BEGIN = '\u0001'
const END = '\u0002'

/** One script of all steps, for bash. */
export function scriptFor(steps: readonly Step[]): string {
  const parts = steps.map(({ command }) => `printf '${BEGIN}'\n{ ${command}\n} </dev/null 2>&1\nprintf '${END}'`)
  return ['. /tmp/node-functions.sh', 'cd /root/modekeep', ...parts, ''].join('\n')
}

/** What each step printed. */
export function outputsOf(text: string): string[] {
  return text
    .split(BEGIN)
    .slice(1)
    .map((part) => part.slice(0, part.indexOf(END)))
}

/** What a page shows as a pattern: "…" is any text of a line, a line of it alone any lines, spaces are as many as there are. */
export function patternOf(shown: string): RegExp {
  const lines = shown.trimEnd().split('\n')
  const parts = lines.map((line) =>
    line.trim() === '…' ? '(?:.*\\n)*?' : `${line.trimEnd().split('…').map(loosely).join('.*')} *\\n`,
  )
  return new RegExp(shown.trim() === '' ? '^\\s*$' : `^${parts.join('')}$`)
}

const loosely = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll(/ +/g, ' +')
