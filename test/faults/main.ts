import { cannotInject } from '../helpers/inject.ts'
import { runMatrix } from './matrix.ts'
import { readOptions, USAGE } from './options.ts'
import { table } from './table.ts'

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2))
  if (options === 'help') {
    process.stdout.write(USAGE)
    return 0
  }
  if (cannotInject) throw new Error(cannotInject)
  const tell = (text: string) => void process.stderr.write(`${text}\n`)
  if (options.asked.seed !== undefined) tell(`seed ${options.asked.seed}`)
  const result = await runMatrix({ ...options.asked, tell })
  process.stdout.write(options.json ? `${JSON.stringify(result)}\n` : `\n${table(result)}`)
  if (result.rows.every(({ tried }) => tried === 0)) throw new Error('nothing was tried: no situation has that title')
  return result.failures.length > 0 ? 1 : 0
}

main().then(
  (code) => process.exit(code),
  (error) => {
    console.error(`test:faults: ${error instanceof Error ? error.message : error}`)
    process.exit(2)
  },
)
