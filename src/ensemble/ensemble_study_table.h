/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a study.ini may say: CRN_STUDY_ROW(id, section, key, type, default, range, help), as the
 * rows of base_opt_table.h. 'cairn help ensemble' shows them.
 */
CRN_STUDY_ROW(DIR, "study", "dir", TEXT, "", "",
              "directory of the study; beside its file, as FILE without .ini")
CRN_STUDY_ROW(SEED, "study", "seed", COUNT, "1", "0..", "all random numbers follow from it")
CRN_STUDY_ROW(MEMBERS, "study", "members", COUNT, "20", "2..65536", "states of the ensemble")
CRN_STUDY_ROW(CYCLES, "study", "cycles", COUNT, "10", "1..1000000000", "propagations and updates")
CRN_STUDY_ROW(STEPS, "study", "steps", COUNT, "1", "1..", "of the model in a cycle")
CRN_STUDY_ROW(SPIN, "study", "spin", COUNT, "0", "0..",
              "steps of the model before its first state is taken")
CRN_STUDY_ROW(SPREAD, "study", "spread", TEXT, "1", "",
              "standard deviation of the first members around the model's first state")
CRN_STUDY_ROW(KEEP, "study", "keep", WORD, "both", "both|analysis|background",
              "states that outlive the server")
CRN_STUDY_ROW(HDF5, "study", "hdf5", WORD, "none", "none|analysis|both",
              "states that are also written as HDF5 files, one for each cycle")
CRN_STUDY_ROW(FILTER, "filter", "name", TEXT, "etkf", "", "what turns background into analysis")
CRN_STUDY_ROW(INFLATION, "filter", "inflation", TEXT, "1", "", "factor of the analysis's anomalies")
CRN_STUDY_ROW(ROTATE, "filter", "rotate", BOOL, "no", "",
              "rotate the analysis at random, keeping mean and covariance")
CRN_STUDY_ROW(OBSERVATIONS, "filter", "observations", TEXT, "", "",
              "file of observations; none: a free run")
CRN_STUDY_ROW(RUNNER, "runner", "command", TEXT, "", "",
              "starts the model, such as 'mpirun -n 4 ./model'")
CRN_STUDY_ROW(RUNNERS, "runner", "number", COUNT, "2", "1..10000", "runners at a time")
CRN_STUDY_ROW(REGISTER, "runner", "register", SECONDS, "120s", "1s..",
              "a runner that has not said hello by then is ended")
CRN_STUDY_ROW(DUE, "runner", "due", SECONDS, "30s", "100ms..",
              "floor of the time after which a task is overdue")
CRN_STUDY_ROW(ATTEMPTS, "runner", "attempts", COUNT, "3", "1..100", "of a member in a cycle")
CRN_STUDY_ROW(FAILING, "runner", "failing", WORD, "stop", "stop|drop|donor",
              "when all attempts of a member have failed")
CRN_STUDY_ROW(MIN_MEMBERS, "runner", "min_members", COUNT, "2", "2..", "with fewer the study stops")
CRN_STUDY_ROW(SERVER, "server", "command", TEXT, "", "", "starts the server; none: this program")
CRN_STUDY_ROW(ADDRESS, "server", "address", TEXT, "127.0.0.1", "",
              "address at which launcher and server listen")
CRN_STUDY_ROW(SERVER_TIMEOUT, "server", "timeout", SECONDS, "120s", "1s..",
              "a server without a sign of life for so long is ended")
CRN_STUDY_ROW(MODEL_FIRST, "model", "first", TEXT, "", "",
              "HDF5 or netCDF-4 file with a first state, where runner.command has {in}")
CRN_STUDY_ROW(MODEL_ASSIMILATED, "model", "assimilated", TEXT, "", "",
              "datasets of it that observations change")
CRN_STUDY_ROW(MODEL_CARRIED, "model", "carried", TEXT, "*", "",
              "datasets of it that go with their member; *: all others that have numbers")
CRN_STUDY_ROW(MODEL_PARAMETER, "model", "parameter", TEXT, "", "",
              "datasets of it that observations change, and the model does not")
CRN_STUDY_ROW(CHECK, "check", "command", TEXT, "", "",
              "starts the model on another number of ranks; none: runner.command with another -n")
CRN_STUDY_ROW(TWIN_EVERY, "twin", "every", COUNT, "1", "1..",
              "of the elements, each so many-th is observed")
CRN_STUDY_ROW(TWIN_VARIANCE, "twin", "variance", TEXT, "1", "", "of the errors of observations")
