const [module = '', world = ''] = process.argv.slice(2)
const { run } = await import(module)

// The first process of the run's namespaces waits for this one; when it ends, everything that is left here is killed.
run(JSON.parse(world)).then(
  (failed: boolean) => process.exit(failed ? 1 : 0),
  (error: unknown) => {
    console.error(error)
    process.exit(2)
  },
)
