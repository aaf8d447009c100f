import { describe, expect, it } from 'vitest'
import { Refusal } from '../../../src/errors/refusal.ts'
import { parseFlexVolumeCall } from '../../../src/frontends/flexvolume/protocol.ts'

const DIR = '/var/lib/kubelet/pods/8c03/volumes/modekeep~fs/v'

function refusalOf(argv: string[]): string {
  try {
    parseFlexVolumeCall(argv)
  } catch (error) {
    if (error instanceof Refusal) return error.message
    throw error
  }
  throw new Error(`not refused: ${JSON.stringify(argv)}`)
}

describe("kubelet's three FlexVolume verbs", () => {
  it.each([
    [['init'], { verb: 'init' }],
    [['mount', DIR, '{}'], { verb: 'mount', directory: DIR, options: '{}' }],
    [['mount', DIR, ''], { verb: 'mount', directory: DIR, options: '' }],
    [['unmount', DIR], { verb: 'unmount', directory: DIR }],
  ])('%j is parsed', (argv, call) => {
    expect(parseFlexVolumeCall(argv)).toEqual(call)
  })

  it.each([
    ['mount', 'mount takes 2 argument(s), got 0: call it as "mount DIR JSON"', ['mount']],
    ['mount', 'mount takes 2 argument(s), got 1: call it as "mount DIR JSON"', ['mount', DIR]],
    ['mount', 'mount takes 2 argument(s), got 3: call it as "mount DIR JSON"', ['mount', DIR, '{}', 'x']],
    ['unmount', 'unmount takes 1 argument(s), got 0: call it as "unmount DIR"', ['unmount']],
    ['unmount', 'unmount takes 1 argument(s), got 2: call it as "unmount DIR"', ['unmount', DIR, '{}']],
    ['init', 'init takes 0 argument(s), got 1: call it as "init"', ['init', 'x']],
  ])('%s with missing or extra arguments is refused with the correct call: %s', (_verb, message, argv) => {
    expect(refusalOf(argv)).toBe(message)
  })

  // Every verb of flexvolume/driver-call.go that modekeep leaves to kubelet, and what is none.
  it.each([
    ['getvolumename'],
    ['attach'],
    ['detach'],
    ['waitforattach'],
    ['isattached'],
    ['mountdevice'],
    ['unmountdevice'],
    ['expandvolume'],
    ['expandfs'],
    [''],
    ['--help'],
    ['-v'],
    ['INIT'],
    ['init '],
    ['__proto__'],
    ['constructor'],
  ])('%j is parsed as another verb, with any arguments', (verb) => {
    expect(parseFlexVolumeCall([verb])).toEqual({ verb: 'other', name: verb })
    expect(parseFlexVolumeCall([verb, 'relative', '..', 'more'])).toEqual({ verb: 'other', name: verb })
  })
})

describe('the mount directory', () => {
  it.each([
    ['a trailing slash', '/a/b/', '/a/b'],
    ['many trailing slashes', '/a/b///', '/a/b'],
    ['double slashes', '//a//b', '/a/b'],
    ['single dots', '/a/./b/.', '/a/b'],
    ['the root', '/', '/'],
    ['a space', '/a b/c d', '/a b/c d'],
    ['a newline', '/a\nb/c', '/a\nb/c'],
    ['a tab and a backslash', '/a\tb/c\\d', '/a\tb/c\\d'],
    ['names that begin with dots', '/..a/...', '/..a/...'],
    ['letters beyond ASCII', '/ä/日本', '/ä/日本'],
  ])('with %s is read as one normalized path', (_what, given, read) => {
    expect(parseFlexVolumeCall(['unmount', given])).toEqual({ verb: 'unmount', directory: read })
    expect(parseFlexVolumeCall(['mount', given, '{}'])).toEqual({ verb: 'mount', directory: read, options: '{}' })
  })

  it.each([
    ['empty', '', '"": an absolute path is needed'],
    ['relative', 'a/b', '"a/b": an absolute path is needed'],
    ['relative with a dot', './a', '"./a": an absolute path is needed'],
    ['with a leading space', ' /a', '" /a": an absolute path is needed'],
    ['with .. in it', '/a/../b', '"/a/../b": it must not contain ".."'],
    ['ending in ..', '/a/..', '"/a/..": it must not contain ".."'],
    ['not UTF-8', '/a\ufffdb', '"/a\ufffdb": it is not valid UTF-8'],
  ])('%s is refused, with the path and the reason', (_what, given, reason) => {
    const message = `mount directory ${reason}; kubelet passes <its root>/pods/<uid>/volumes/…`
    expect(refusalOf(['mount', given, '{}'])).toBe(message)
    expect(refusalOf(['unmount', given])).toBe(message)
  })

  it('is shown with escaped control characters, and truncated if it is long', () => {
    expect(refusalOf(['unmount', 'a\nb'])).toContain('mount directory "a\\nb": ')
    const message = refusalOf(['unmount', 'x/'.repeat(2000)])
    expect(message).toContain('… (4002 characters): an absolute path is needed')
    expect(message.length).toBeLessThan(300)
  })
})
