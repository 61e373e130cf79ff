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
CRN_STUDY_ROW(KEEP, "study", "keep", WORD, "both", "both|analysis|background|none",
              "states that outlive the server")
CRN_STUDY_ROW(RANGES, "study", "ranges", TEXT, "", "",
              "what a result may have, 'FIELD LOW HIGH, ...'; others fail")
CRN_STUDY_ROW(HDF5, "study", "hdf5", WORD, "none", "none|analysis|both",
              "states that are also written as HDF5 files, one for each cycle")
CRN_STUDY_ROW(FILTER, "filter", "name", TEXT, "etkf", "",
              "what turns background into analysis; file.so: a filter of one's own")
CRN_STUDY_ROW(INFLATION, "filter", "inflation", TEXT, "1", "", "factor of the analysis's anomalies")
CRN_STUDY_ROW(ROTATE, "filter", "rotate", BOOL, "no", "",
              "rotate the analysis at random, keeping mean and covariance")
CRN_STUDY_ROW(OBSERVATIONS, "filter", "observations", TEXT, "", "",
              "file of observations; none: a free run")
CRN_STUDY_ROW(LOCAL, "filter", "local", BOOL, "no", "",
              "update each element by the observations around it; a letkf always does")
CRN_STUDY_ROW(RTPP, "filter", "rtpp", TEXT, "0", "",
              "relaxation to prior perturbations: share of the background's anomalies, 0 to 1")
CRN_STUDY_ROW(RTPS, "filter", "rtps", TEXT, "0", "",
              "relaxation to prior spread: share of the spread that is given back")
CRN_STUDY_ROW(ADAPTIVE, "filter", "adaptive", BOOL, "no", "",
              "inflate the background as innovations demand")
CRN_STUDY_ROW(
    FAR, "filter", "far", TEXT, "0", "",
    "leave out observations farther from the mean than so many expected deviations; 0: none")
CRN_STUDY_ROW(DIVERGED, "filter", "diverged", TEXT, "3", "",
              "innovations of so many expected deviations are a sign of divergence; 0: never")
CRN_STUDY_ROW(DIVERGED_CYCLES, "filter", "diverged_cycles", COUNT, "5", "1..1000000",
              "for so many cycles in a row")
CRN_STUDY_ROW(STOP_DIVERGED, "filter", "stop_diverged", BOOL, "no", "",
              "stop the study when its filter has diverged")
CRN_STUDY_ROW(ASYNCHRONOUS, "filter", "asynchronous", BOOL, "no", "",
              "observe members at the times of observations: the model may stop at any step")
CRN_STUDY_ROW(TIME_START, "filter", "time_start", TEXT, "0", "",
              "time at which the first cycle begins, where observations have times")
CRN_STUDY_ROW(TIME_STEP, "filter", "time_step", TEXT, "1", "", "time of one step of the model")
CRN_STUDY_ROW(SPACE_DIMS, "space", "dims", COUNT, "0", "0..3", "coordinates of a place")
CRN_STUDY_ROW(SPACE_PERIOD, "space", "period", TEXT, "", "",
              "period of each coordinate; 0: it has none")
CRN_STUDY_ROW(SPACE_SPHERE, "space", "sphere", TEXT, "0", "",
              "radius of the sphere of longitudes and latitudes in degrees; 0: a plane")
CRN_STUDY_ROW(SPACE_VERTICAL, "space", "vertical", TEXT, "0", "",
              "distance that a unit of the third coordinate counts for; 0: as the others")
CRN_STUDY_ROW(FIELD_AXES, "field", "axes", TEXT, "", "",
              "[field NAME]: dimension of the array along which each coordinate runs; -1: none")
CRN_STUDY_ROW(FIELD_ORIGIN, "field", "origin", TEXT, "", "", "coordinates of its first element; 0")
CRN_STUDY_ROW(FIELD_STEP, "field", "step", TEXT, "", "",
              "from one element to the next, along each coordinate; 1")
CRN_STUDY_ROW(FIELD_COORDINATES, "field", "coordinates", TEXT, "", "",
              "or carried fields of the model that have the coordinates, of axes or elements")
CRN_STUDY_ROW(FIELD_GLOBAL, "field", "global", BOOL, "no", "",
              "a local filter updates it by all observations, wherever they are")
CRN_STUDY_ROW(FIELD_SPREAD, "field", "spread", TEXT, "", "",
              "standard deviation of its first perturbations; none: study.spread")
CRN_STUDY_ROW(FIELD_SMOOTH, "field", "smooth", COUNT, "0", "0..100000",
              "passes that smooth them over neighbours: the root of half of it is their length")
CRN_STUDY_ROW(FIELD_CODECS, "field", "codecs", TEXT, "", "",
              "of dynamic mode, for this field; none: dynamic.settings")
CRN_STUDY_ROW(FIELD_SIGMA, "field", "sigma", TEXT, "", "", "likewise; none: dynamic.sigma")
CRN_STUDY_ROW(OBS_FIELD, "observation", "field", TEXT, "", "",
              "[observation TYPE]: what is observed; none: the field with the type's name")
CRN_STUDY_ROW(OBS_OPERATOR, "observation", "operator", WORD, "auto",
              "auto|index|interpolate|column|plugin", "how; auto: by index if there is one")
CRN_STUDY_ROW(OBS_RADIUS, "observation", "radius", TEXT, "", "",
              "of a local filter: as a Gaussian's standard deviation; 0 weight from 3.64 radii on")
CRN_STUDY_ROW(OBS_VARIANCE, "observation", "variance", TEXT, "", "",
              "of errors, for observations without one")
CRN_STUDY_ROW(OBS_CORRELATION, "observation", "correlation", TEXT, "", "",
              "length of exponential correlation of errors within a block")
CRN_STUDY_ROW(OBS_ALONG, "observation", "along", TEXT, "", "", "dimension that a column sums along")
CRN_STUDY_ROW(OBS_WEIGHTS, "observation", "weights", TEXT, "", "",
              "of the elements of a column; none: 1 each")
CRN_STUDY_ROW(OBS_FIXED, "observation", "fixed", TEXT, "", "",
              "index in each dimension, for those without an axis; 0")
CRN_STUDY_ROW(OBS_PLUGIN, "observation", "plugin", TEXT, "", "",
              "operator of one's own, as file.so:name")
CRN_STUDY_ROW(REGION_BOX, "region", "box", TEXT, "", "",
              "[region NAME]: from and to of each coordinate, for statistics")
CRN_STUDY_ROW(PRODUCTS, "products", "every", COUNT, "0", "0..",
              "mean and spread of each so many-th cycle are kept; 0: of none")
CRN_STUDY_ROW(PRODUCTS_AS, "products", "as", WORD, "hdf5", "hdf5|shelf|both",
              "in files of HDF5, or as states on the study's shelf")
CRN_STUDY_ROW(RESAMPLING, "particle", "resampling", WORD, "systematic",
              "systematic|multinomial|stratified|residual", "how parents are drawn")
CRN_STUDY_ROW(THRESHOLD, "particle", "threshold", TEXT, "1", "",
              "resample when the effective sample size falls below this part of the members")
CRN_STUDY_ROW(JITTER, "particle", "jitter", TEXT, "0", "",
              "regularisation: factor of the kernel's bandwidth by which copies are moved apart")
CRN_STUDY_ROW(COPY_PERTURB, "particle", "perturb", TEXT, "0", "",
              "standard deviation of what is added to copies, for models without noise")
CRN_STUDY_ROW(CACHE, "particle", "cache", TEXT, "auto", "",
              "node-local directory of the runners' caches; auto: below $TMPDIR or /tmp")
CRN_STUDY_ROW(CAPACITY, "particle", "capacity", COUNT, "7", "3..65536", "states of a cache")
CRN_STUDY_ROW(CACHE_LIMIT, "particle", "limit", NBYTES, "0", "0..",
              "bytes a second between a cache and the shelf, of one transfer; 0: no limit")
CRN_STUDY_ROW(EARLY, "particle", "early", BOOL, "no", "",
              "weights count before their states are on the shelf")
CRN_STUDY_ROW(STRICT, "particle", "strict", BOOL, "no", "",
              "nobody steals; a parent goes to at most its share of the runners")
CRN_STUDY_ROW(AHEAD, "particle", "ahead", BOOL, "yes", "",
              "at the end of a cycle, load states that resampling is certain to keep")
CRN_STUDY_ROW(PEERS, "particle", "peers", BOOL, "no", "",
              "load from caches of other runners on the same node, where they have a state")
CRN_STUDY_ROW(NODE_SIZE, "particle", "node_size", COUNT, "0", "0..1000000",
              "ranks of a virtual node, for tests on one machine; 0: nodes are real")
CRN_STUDY_ROW(RUNNER, "runner", "command", TEXT, "", "",
              "starts the model, such as 'mpirun -n 4 ./model'")
CRN_STUDY_ROW(RUNNERS, "runner", "number", COUNT, "2", "1..10000", "runners at a time")
CRN_STUDY_ROW(RUNNER_JOBS, "runner", "jobs", WORD, "local", "local|sbatch",
              "what runners are: processes of this machine, or jobs of Slurm")
CRN_STUDY_ROW(RUNNER_SUBMIT, "runner", "submit", TEXT, "", "",
              "options of sbatch for a runner, such as '-n 4 -t 60'")
CRN_STUDY_ROW(LIMIT, "runner", "limit", SECONDS, "0s", "0s..",
              "runners of this machine are replaced after so long; 0: never")
CRN_STUDY_ROW(REGISTER, "runner", "register", SECONDS, "120s", "1s..",
              "a runner that has not said hello by then is ended")
CRN_STUDY_ROW(DUE, "runner", "due", SECONDS, "30s", "100ms..",
              "floor of the time after which a task is overdue")
CRN_STUDY_ROW(ATTEMPTS, "runner", "attempts", COUNT, "3", "1..100", "of a member in a cycle")
CRN_STUDY_ROW(FAILING, "runner", "failing", WORD, "stop", "stop|drop|donor",
              "when all attempts of a member have failed")
CRN_STUDY_ROW(MIN_MEMBERS, "runner", "min_members", TEXT, "2", "",
              "with fewer the study stops: a number, or a share as '75%'")
CRN_STUDY_ROW(SERVER, "server", "command", TEXT, "", "", "starts the server; none: this program")
CRN_STUDY_ROW(SERVER_RANKS, "server", "ranks", COUNT, "1", "1..100000",
              "of MPI, each with a slice of all states; a server.command of one's own must start "
              "as many")
CRN_STUDY_ROW(SERVER_JOBS, "server", "jobs", WORD, "local", "local|sbatch",
              "what the server is, likewise")
CRN_STUDY_ROW(SERVER_SUBMIT, "server", "submit", TEXT, "", "", "options of sbatch for the server")
CRN_STUDY_ROW(ADDRESS, "server", "address", TEXT, "", "",
              "address at which launcher and server listen; none: 127.0.0.1 where all jobs are "
              "local, else the machine's own")
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
CRN_STUDY_ROW(SETTINGS, "validate", "settings", TEXT, "", "",
              "codecs with loss to be judged, such as 'zfp:accuracy=1e-6|1e-8 f32'")
CRN_STUDY_ROW(LISTING, "validate", "config", TEXT, "", "",
              "JSON file with settings, as the framework of MelissaDA has it")
CRN_STUDY_ROW(VALIDATORS, "validate", "validators", COUNT, "1", "1..1000", "jobs at a time")
CRN_STUDY_ROW(LAG, "validate", "lag", COUNT, "2", "1..1000",
              "cycles that validators may be behind before the study waits for them")
CRN_STUDY_ROW(PERTURB, "validate", "perturb", TEXT, "0", "",
              "deviation of what is added to each state before it is propagated")
CRN_STUDY_ROW(NOISE, "validate", "noise", TEXT, "0", "",
              "the same, of the noise test, different in each ensemble; 0: no such test")
CRN_STUDY_ROW(JUDGE, "validate", "judge", COUNT, "0", "0..", "cycles that count; 0: all")
CRN_STUDY_ROW(DELTA, "validate", "delta", TEXT, "0.1", "",
              "the RMSZ of each member changes by less")
CRN_STUDY_ROW(RHO, "validate", "rho", TEXT, "0.9999", "", "correlation at least")
CRN_STUDY_ROW(SHARE, "validate", "share", TEXT, "0.1", "", "error over spread at most")
CRN_STUDY_ROW(SSIM, "validate", "ssim", TEXT, "0.9995", "",
              "structural similarity at least, of two and more dimensions")
CRN_STUDY_ROW(SIGMAS, "validate", "sigmas", TEXT, "1", "",
              "deviations of slopes between members that a slope may be off")
CRN_STUDY_ROW(DISCOVERIES, "validate", "discoveries", TEXT, "0.05", "",
              "share of wrong ones among members whose distribution is found to be another")
CRN_STUDY_ROW(FUNCTIONS, "validate", "functions", TEXT, "", "",
              "shared objects with functions of one's own of states")
CRN_STUDY_ROW(PATIENCE, "validate", "patience", SECONDS, "30s", "100ms..",
              "for such a function, of a stretch of all states")
CRN_STUDY_ROW(DYNAMIC_SETTINGS, "dynamic", "settings", TEXT, "", "",
              "codecs with loss, by the best of which states are stored, such as "
              "'zfp:accuracy=1e-6|1e-8 f32'; none: no dynamic mode")
CRN_STUDY_ROW(DYNAMIC_LISTING, "dynamic", "config", TEXT, "", "",
              "JSON file with them, as the framework of MelissaDA has it")
CRN_STUDY_ROW(DYNAMIC_SIGMA, "dynamic", "sigma", TEXT, "0", "",
              "the largest error that is tolerated")
CRN_STUDY_ROW(DYNAMIC_RETRY, "dynamic", "retry", COUNT, "10", "1..",
              "all codecs are tried in the first cycle, and each so many cycles again")
CRN_STUDY_ROW(DYNAMIC_CHECK, "dynamic", "check", BOOL, "yes", "",
              "check each state before it is stored")
CRN_STUDY_ROW(DYNAMIC_MEASURE, "dynamic", "measure", BOOL, "yes", "",
              "measure the gain, and store without loss while there is none")
CRN_STUDY_ROW(TWIN_EVERY, "twin", "every", COUNT, "1", "1..",
              "of the elements, each so many-th is observed")
CRN_STUDY_ROW(TWIN_PLACES, "twin", "places", COUNT, "0", "0..100000000",
              "scattered places in a cycle of each type of observation; 0: elements instead")
CRN_STUDY_ROW(TWIN_VARIANCE, "twin", "variance", TEXT, "1", "", "of the errors of observations")
