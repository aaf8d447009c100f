import { withMapped } from './mapped-volume.ts'

// In a process of its own: maps the directory that is named, and writes how that was refused.
try {
  withMapped(process.argv[2] ?? '', 0, 2000)
} catch (error) {
  process.stdout.write((error as Error).message)
}
