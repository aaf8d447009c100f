// Required into npm: it leaves optional packages out that the Node it runs on is too old for, and all of them are for the
// packaged Node.
const { optionalDependencies } = require('../package.json')

Object.defineProperty(process, 'version', { value: `v${optionalDependencies[`node-linux-${process.arch}`]}` })
