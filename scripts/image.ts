import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { provideBusybox } from './fetch/packages.ts'
import { createModekeepImage } from './image/modekeep.ts'

const ROOT = resolve(import.meta.dirname, '..')
const USAGE = `Usage: npm run image -- [OPTION]...
Make the container image of driver/kubernetes as a docker-archive, without a registry.

  --output FILE      where it goes (default: dist/modekeep-image.tar)
  --busybox FILE     the static busybox in it (default: Debian's package busybox-static)
  --help             this text

Then, for example:
  ctr --namespace k8s.io images import dist/modekeep-image.tar    # on one node
  docker load -i dist/modekeep-image.tar                          # to tag it and push it to your registry
`

function readImageOptions() {
  const options = {
    output: { type: 'string', default: `${ROOT}/dist/modekeep-image.tar` },
    busybox: { type: 'string' },
    help: { type: 'boolean', default: false },
  } as const
  try {
    return parseArgs({ options }).values
  } catch (error) {
    console.error(`image: ${error instanceof Error ? error.message : error}\n${USAGE}`)
    process.exit(2)
  }
}

const imageOptions = readImageOptions()
if (imageOptions.help) {
  process.stdout.write(USAGE)
  process.exit(0)
}
const imageShell =
  imageOptions.busybox === undefined ? provideBusybox() : { busybox: resolve(imageOptions.busybox), licence: '' }
const imageArchive = createModekeepImage({ binary: `${ROOT}/dist/modekeep`, ...imageShell })
const imageOutputPath = resolve(imageOptions.output)
fs.writeFileSync(`${imageOutputPath}.new`, imageArchive)
fs.renameSync(`${imageOutputPath}.new`, imageOutputPath)
console.log(`${imageOutputPath}: ${(imageArchive.length / 1e6).toFixed(1)} MB`)
