import type { DoctorDocument } from '../doctor/findings.ts'
import { doctorLines } from '../text/doctor.ts'
import { JSON_TEXT, type Shown } from './form.ts'

export const doctor: Shown<{ verb: 'doctor' }, DoctorDocument> = {
  operands: '',
  summary: 'check the node: kernel, helpers, kubelet, permissions, records',
  text: [
    "Checks what modekeep needs on this node: the kernel's features, modekeep's system calls compared with Node's, " +
      "helper programs, kubelet's plugin directory and the driver in it, the configuration, owners and permissions, " +
      'free space, records without mounts, mounts without records, and what interrupted calls left.',
    'Each system call is really made, on nothing of the node. Each finding says what to do. Changes nothing.',
  ],
  options: { json: JSON_TEXT },
  examples: ['modekeep doctor || echo "this node needs a look"'],
  failure: 'there is a fault (a warning alone is no failure)',
  isLooking: true,
  read: () => ({ verb: 'doctor' }),
  lines: doctorLines,
  trouble: ({ faults }) => (faults > 0 ? 'this node has faults: what to do is above' : undefined),
}
