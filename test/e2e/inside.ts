import { run } from './run.ts'
import type { World } from './world.ts'

// The first process of the run's namespaces waits for this one; when it ends, everything that is left here is killed.
run(JSON.parse(process.argv[2] ?? '') as World).then(
  (failed) => process.exit(failed ? 1 : 0),
  (error) => {
    console.error(error)
    process.exit(2)
  },
)
