import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { describe, expect, it, onTestFinished } from 'vitest'
import { isRoot } from '../helpers/stage.ts'

const OWN_PLACE = `${import.meta.dirname}/confine/own-place.ts`
const title = `a node of the cluster tests${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`

/** Mounts proc in a user namespace, on a node with a file bound over /proc/sys. @returns mount's last words */
function mountInUserNamespace(prepare: string): string {
  const directory = fs.mkdtempSync(`${tmpdir()}/modekeep-proc-`)
  onTestFinished(() => fs.rmSync(directory, { recursive: true }))
  fs.writeFileSync(`${directory}/file`, '1\n')
  fs.mkdirSync(`${directory}/new`)
  const script = `
    mount --bind ${directory}/file /proc/sys/vm/overcommit_memory
    ${prepare.replaceAll('DIRECTORY', directory)}
    exec unshare -U -r -m -p -f mount -t proc proc ${directory}/new`
  const { stderr } = spawnSync('unshare', ['-m', '-p', '-f', '--mount-proc', 'sh', '-ec', script], { encoding: 'utf8' })
  return stderr.trim()
}

describe.skipIf(!isRoot)(title, () => {
  it('a node of the cluster tests permits a pod with a user namespace to mount proc, although files are mounted over /proc/sys', () => {
    expect(mountInUserNamespace(':')).toMatch(/permission denied/i)
    const program = `import('${OWN_PLACE}').then(({ mountWholeProc }) => mountWholeProc('DIRECTORY'))`
    expect(mountInUserNamespace(`'${process.execPath}' -e "${program}"`)).toBe('')
  })
})
