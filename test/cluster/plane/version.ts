/** Whether a version as programs say it, like `v1.20.2`, is this one or newer, like `1.22`. */
export function isAtLeast(version: string, wanted: string): boolean {
  const [major = 0, minor = 0] = numbers(version)
  const [wantedMajor = 0, wantedMinor = 0] = numbers(wanted)
  return major > wantedMajor || (major === wantedMajor && minor >= wantedMinor)
}

const numbers = (text: string) => (/(\d+)\.(\d+)/.exec(text) ?? []).slice(1).map(Number)
