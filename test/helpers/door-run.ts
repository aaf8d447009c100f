/** Names how much of the selected tests a run has in which a resident worker makes their FlexVolume calls. */
export const DOOR_VARIABLE = 'MODEKEEP_TEST_DOOR'

/** 'all': complete files; 'named': some tests of them; 'tenth': those that the seed draws. */
export type DoorRun = 'all' | 'named' | 'tenth'

const DOOR_RUNS: readonly DoorRun[] = ['all', 'named', 'tenth']

/** Undefined in all other runs. */
export const DOOR_RUN: DoorRun | undefined = DOOR_RUNS.find((run) => run === process.env[DOOR_VARIABLE])

/** The note of a test that the seed did not draw. */
export const NOT_DRAWN = 'not of the tenth that the seed draws'
