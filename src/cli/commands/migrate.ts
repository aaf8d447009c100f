import { readFileOperand } from './operands.ts'
import type { VerbArguments, VerbForm } from './verb.ts'

/** @property file absolute, or "-" for stdin */
export interface MigrateCommand {
  verb: 'migrate'
  file: string
}

export const migrateVerb = {
  operands: 'FILE',
  summary: "rewrite manifests of other FlexVolume drivers to modekeep's",
  text: [
    'Reads manifests (YAML or JSON, several documents, "-" for stdin) and prints them with the FlexVolumes of the ' +
      'drivers fstab/cifs, juliohm/cifs, microsoft.com/smb and k8s/nfs as volumes of modekeep/fs, and with the type of ' +
      'their Secrets. All else stays as it is written, comments too. Nothing of the node or of a cluster is touched.',
    'On stderr it says what it could not take over, with the key, the value, why and what to do, and the rules that ' +
      "the nodes' configuration needs for these volumes. No password is shown.",
  ],
  options: {},
  examples: [
    'modekeep migrate volumes.yaml > new-volumes.yaml',
    'kubectl get pv -o yaml | modekeep migrate - > new-volumes.yaml',
  ],
  failure: 'something could not be taken over: it is on stderr',
  read(args: VerbArguments): MigrateCommand {
    const { words } = args
    return { verb: 'migrate', file: words.length === 1 && words[0] === '-' ? '-' : readFileOperand('migrate', args) }
  },
} satisfies VerbForm
