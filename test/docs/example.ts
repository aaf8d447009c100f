import { parseAllDocuments } from 'yaml'

/** What of a Pod's manifest reaches a FlexVolume driver. */
export interface Pod {
  metadata: { name: string; namespace?: string }
  spec: { securityContext?: { fsGroup?: number }; volumes: Volume[] }
}

export interface Volume {
  name: string
  flexVolume: {
    driver: string
    fsType?: string
    readOnly?: boolean
    secretRef?: { name: string }
    options?: Record<string, string>
  }
}

/** The code blocks of one language, by their heading. */
export function blocksOf(page: string, language: string): { heading: string; text: string }[] {
  const pattern = new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm')
  return [...page.matchAll(pattern)].map(({ 1: text = '', index }) => {
    const headings = [...page.slice(0, index).matchAll(/^#+ (.*)$/gm)]
    return { heading: headings.at(-1)?.[1] ?? '', text }
  })
}

export function podsOf(text: string): Pod[] {
  return parseAllDocuments(text).flatMap((document) => {
    const value = document.toJS()
    return value?.kind === 'Pod' ? [value as Pod] : []
  })
}

/**
 * The options as kubelet sends them: the pod's own over its own keys.
 * @param secrets of the secret that the volume refers to, as plain text
 */
export function kubeletOptions({ metadata, spec }: Pod, volume: Volume, secrets: Record<string, string>) {
  const { fsType = '', readOnly = false, options = {} } = volume.flexVolume
  const { fsGroup } = spec.securityContext ?? {}
  const encoded = Object.entries(secrets).map(([key, value]) => [
    `kubernetes.io/secret/${key}`,
    Buffer.from(value).toString('base64'),
  ])
  return {
    'kubernetes.io/fsType': fsType,
    'kubernetes.io/readwrite': readOnly ? 'ro' : 'rw',
    ...(fsGroup === undefined ? {} : { 'kubernetes.io/mounterArgs.FsGroup': String(fsGroup) }),
    'kubernetes.io/pod.name': metadata.name,
    'kubernetes.io/pod.namespace': metadata.namespace ?? 'default',
    'kubernetes.io/pod.uid': '8c03f2a2-6d7e-4b5a-9f58-0c6a3c1f7b11',
    'kubernetes.io/pvOrVolumeName': volume.name,
    'kubernetes.io/serviceAccount.name': '',
    ...Object.fromEntries(encoded),
    ...options,
  }
}
