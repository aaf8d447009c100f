import fc, { type Arbitrary } from 'fast-check'
import { optionTexts } from './option-texts.ts'
import { anyText } from './texts.ts'

/** Arguments as the kernel takes them: bytes without NUL, not longer than one argument may be. */
export type Call = readonly Buffer[]

const LONGEST = 100_000

function argument(bytes: Uint8Array | string): Buffer {
  return Buffer.from(Buffer.from(bytes).filter((byte) => byte !== 0)).subarray(0, LONGEST)
}

const anyBytes = fc.oneof(anyText, fc.uint8Array({ maxLength: 40 })).map(argument)

const KUBELETS = 'init mount unmount attach detach waitforattach isattached getvolumename mountdevice expandfs'.split(
  ' ',
)

/** Mount directories: kubelet's own, and what is nearly one; all below `top`, or none. */
function directories(top: string): Arbitrary<Buffer> {
  const name = fc.oneof(fc.constantFrom('v', 'a b', '..', '.', '', 'é', 'x'.repeat(255), 'x'.repeat(256)), anyText)
  const below = fc
    .array(name, { minLength: 1, maxLength: 4 })
    .map((names) => argument(`${top}/none/${names.join('/')}`))
  return fc.oneof(
    { weight: 4, arbitrary: fc.constant(argument(`${top}/pods/8c03/volumes/modekeep~fs/v`)) },
    { weight: 3, arbitrary: below },
    { weight: 1, arbitrary: fc.constantFrom('', 'relative', './v', '-', '--json').map(argument) },
    { weight: 1, arbitrary: fc.constant(Buffer.concat([Buffer.from(`${top}/none/`), Buffer.of(0xff, 0xc3)])) },
  )
}

/** What kubelet calls, and calls that look like it. */
export function kubeletCalls(top: string): Arbitrary<Call> {
  const directory = directories(top)
  const options = optionTexts.map((text) => argument(text.replaceAll('/srv/volumes', `${top}/volumes`)))
  const verb = fc.constantFrom(...KUBELETS).map(argument)
  return fc.oneof(
    { weight: 5, arbitrary: fc.tuple(fc.constant(argument('mount')), directory, options) },
    { weight: 2, arbitrary: fc.tuple(fc.constant(argument('unmount')), directory) },
    {
      weight: 3,
      arbitrary: fc.tuple(verb, fc.array(fc.oneof(directory, options, anyBytes), { maxLength: 4 })).map(flat),
    },
  )
}

/** What a person calls: never a directory outside of `top`, and nothing that stays. */
export function operatorCalls(top: string): Arbitrary<Call> {
  const option = fc.oneof(
    fc.constantFrom(
      '--json',
      '--fsgroup',
      '--fsgroup=2000',
      '--fsgroup=-1',
      '--fs-group-change-policy=Always',
      '--fs-group-change-policy',
      '--dry-run',
    ),
    fc.constantFrom('--group-access=grant', '--group-access', '--help', '-h', '-x', '--', '--kubelet-subpaths', '2000'),
    fc.string({ maxLength: 8 }).map((text) => `--${text}`),
  )
  const word = fc.oneof(
    option.map(argument),
    directories(top).filter((bytes) => !isRelative(bytes)),
  )
  const verb = fc.constantFrom('plan', 'apply', 'restore', 'status', 'heal', 'help', 'version', '--help').map(argument)
  const words = fc.array(word, { maxLength: 5 }).filter((list) => list.every((bytes) => !bytes.includes('--watch')))
  return fc.tuple(verb, words).map(flat)
}

/** A word that starts in the working directory, which is no test's. */
const isRelative = (bytes: Buffer) => !bytes.toString().startsWith('/')

function flat([first, rest]: [Buffer, Buffer[]]): Call {
  return [first, ...rest]
}
