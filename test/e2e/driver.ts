import * as fs from 'node:fs'
import { DRIVER } from './provisioner.ts'

/** The description of the driver for the suite. Two inline volumes, each a directory that all pods share. */
export function writeDriver(file: string, volumes: string): void {
  const InlineVolumes = ['inline-a', 'inline-b'].map((name) => {
    fs.mkdirSync(`${volumes}/${name}`, { recursive: true })
    fs.chmodSync(`${volumes}/${name}`, 0o777)
    return { Attributes: { source: `${volumes}/${name}` }, Shared: true }
  })
  const can = ['persistence', 'exec', 'multipods', 'RWX', 'singleNodeVolume']
  const DriverInfo = {
    Name: DRIVER,
    Capabilities: Object.fromEntries(can.map((name) => [name, true])),
    RequiredAccessModes: ['ReadWriteMany'],
    SupportedMountOption: { noatime: {} },
    SupportedSizeRange: { Min: '1Mi' },
    StressTestOptions: { NumPods: 4, NumRestarts: 3 },
  }
  // 1.20 needs a snapshot class before every spec of a claim.
  const [StorageClass, SnapshotClass] = [{ FromName: true }, { FromName: true }]
  fs.writeFileSync(file, JSON.stringify({ StorageClass, SnapshotClass, InlineVolumes, DriverInfo }))
}
