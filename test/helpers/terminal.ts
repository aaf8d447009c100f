import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { setTimeout } from 'node:timers/promises'

const ROWS = 60

/** A terminal, by tmux, that shows one program; its end ends that. */
export interface Terminal extends Disposable {
  /** What it shows, without the blanks at the ends of its lines. */
  shown(): string[]
  /** Waits until what it shows fits. @throws after ten minutes, with what it shows */
  until(fits: (lines: string[]) => boolean): Promise<string[]>
  /** As if typed; a name of tmux's, such as `Tab` or `C-c`, is that key. */
  type(...keys: string[]): void
}

/**
 * @param command for a shell
 * @param columns how wide it is
 */
export function openTerminal(command: string, columns: number, env: Record<string, string> = {}): Terminal {
  const top = fs.mkdtempSync(`${tmpdir()}/modekeep-terminal-`)
  const tmux = (...args: string[]) =>
    execFileSync('tmux', ['-S', `${top}/socket`, '-f', '/dev/null', ...args], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH, LANG: 'C.UTF-8', SHELL: '/bin/sh', HOME: top, ...env },
    })
  const remains = 'set-option -g remain-on-exit on ; set-option -g remain-on-exit-format'.split(' ')
  tmux('start-server', ';', ...remains, '', ';', 'new-session', '-d', '-x', `${columns}`, '-y', `${ROWS}`, command)
  const shown = () => {
    const lines = tmux('capture-pane', '-p').split('\n')
    return lines.slice(0, lines.findLastIndex((line) => line !== '') + 1)
  }
  return {
    shown,
    async until(fits) {
      for (const end = performance.now() + 600_000; performance.now() < end; await setTimeout(100)) {
        const lines = shown()
        if (fits(lines)) return lines
      }
      throw new Error(`the terminal shows:\n${shown().join('\n')}`)
    },
    type: (...keys) => void tmux('send-keys', ...keys),
    [Symbol.dispose]() {
      tmux('kill-server')
      fs.rmSync(top, { recursive: true })
    },
  }
}
