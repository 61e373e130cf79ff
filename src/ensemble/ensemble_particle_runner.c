/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The model's side in a study with a particle filter. A state that was reached goes to the node's
 * cache, its weight is computed here, and the next parent is copied from the cache. The helper
 * (ensemble_helper.h) does all that the model need not wait for.
 */
#include "ensemble/ensemble_dynamic.h"
#include "ensemble/ensemble_helper.h"
#include "ensemble/ensemble_member.h"
#include "ensemble/ensemble_particle.h"
#include "ensemble/ensemble_rows.h"
#include "ensemble/ensemble_weigh.h"

#include <inttypes.h>
#include <math.h>
#include <unistd.h>

struct crn_particle_runner {
    crn_study *study;
    char job[32];
    uint32_t number;
    crn_nodes nodes;
    crn_state_fields fields; /* our pieces */
    crn_state_layout layout;
    uint64_t *first; /* row of each field */
    char *cache;     /* directory; of a node's first rank, which has locked it */
    int lock;
    cairn_shelf *put, *get; /* the cache: by the ranks of the node together, and by each alone */
    crn_helper *helper;     /* of a node's first rank */
    crn_weigher *weigher;
    crn_wire task;
    char refusal[256];
    bool over;
    double took_s;
    uint64_t begun_ns, waited_ns; /* waited_ns: for cache and shelf, since the last task */
};

typedef crn_particle_runner runner;

/* --- joining -------------------------------------------------------------------------------- */

static cairn_status join(runner *p, const char *file, const char *job)
{
    CRN_FAIL_IF(job[0] != 'r' || strlen(job) >= sizeof p->job, CAIRN_EINVAL,
                "CAIRN_ENSEMBLE_JOB '%s' is no runner's", job);
    snprintf(p->job, sizeof p->job, "%s", job);
    p->number = (uint32_t)strtoul(job + 1, NULL, 10);
    return crn_study_open(file, &p->study);
}

cairn_status crn_particle_create(cairn_ensemble *e, crn_particle_runner **ret)
{
    const char *file = getenv("CAIRN_ENSEMBLE_FILE"), *job = getenv("CAIRN_ENSEMBLE_JOB");
    const char *method = getenv("CAIRN_ENSEMBLE_METHOD");
    runner *p;
    if (!file || !job || !method || strcmp(method, "particle") != 0)
        return CAIRN_OK;
    CRN_TRY(crn_alloc(&p, 1));
    p->lock = -1;
    cairn_status rc = crn_comm_agree(e->comm, join(p, file, job));
    if (rc < 0)
        crn_particle_free(p);
    else
        *ret = p;
    return rc;
}

void crn_particle_free(crn_particle_runner *p)
{
    if (!p)
        return;
    cairn_shelf_close(p->get);
    crn_helper_stop(p->helper, p->over);
    cairn_shelf_close(p->put);
    crn_weigher_free(p->weigher);
    crn_layout_done(&p->layout);
    crn_vec_done(&p->fields);
    crn_nodes_done(&p->nodes);
    if (p->lock >= 0)
        close(p->lock);
    free(p->first);
    free(p->cache);
    crn_study_free(p->study);
    free(p);
}

void crn_particle_refuse(crn_particle_runner *p, const char *why)
{
    snprintf(p->refusal, sizeof p->refusal, "%s", why && why[0] ? why : "no reason given");
}

static bool is_root(const runner *p)
{
    return p->nodes.local == 0;
}

/* The first rank of the node chooses its cache, all open it. Collective. */
static cairn_status open_cache(cairn_ensemble *e, runner *p)
{
    char path[4096] = "";
    cairn_status rc = CAIRN_OK;
    if (is_root(p))
        rc = crn_cache_claim(p->study, &p->cache, &p->lock);
    if (rc == CAIRN_OK && is_root(p))
        snprintf(path, sizeof path, "%s", p->cache);
    CRN_TRY(crn_comm_agree(e->comm, rc));
    for (int r = 0, node = 0; r < crn_comm_size(e->comm); r++) {
        char theirs[sizeof path]; /* each node has another; they are numbered by their first rank */
        if (p->nodes.of_rank[r] != node)
            continue;
        memcpy(theirs, path, sizeof path);
        CRN_TRY(crn_comm_bcast(e->comm, theirs, sizeof theirs, r));
        if (p->nodes.node == node++)
            memcpy(path, theirs, sizeof path);
    }
    CRN_TRY(crn_comm_agree(e->comm, crn_member_open_shelf(e, path, &p->put)));
    int opened = cairn_shelf_open(path, NULL, &p->get);
    return crn_comm_agree(
        e->comm, opened < 0 ? crn_fail((cairn_status)opened, "%s", cairn_error_text()) : CAIRN_OK);
}

static cairn_status start_helper(runner *p, const crn_gathered *fields, uint32_t rank,
                                 uint32_t nranks)
{
    crn_buf *each = NULL;
    if (!is_root(p))
        return CAIRN_OK;
    CRN_TRY(crn_alloc(&each, nranks));
    for (uint32_t k = 0; rank == 0 && k < nranks; k++)
        each[k] = (crn_buf){.at = fields->data + fields->off[k],
                            .n = fields->off[k + 1] - fields->off[k]};
    const crn_helper_setup setup = {.study = p->study,
                                    .job = p->job,
                                    .number = p->number,
                                    .rank = rank,
                                    .node = (uint32_t)p->nodes.node,
                                    .nnodes = (uint32_t)p->nodes.nnodes,
                                    .fields = each,
                                    .nranks = nranks,
                                    .cache = p->cache};
    cairn_status rc = crn_helper_start(&setup, &p->helper);
    free(each);
    return rc;
}

/* All ranks' fields go to the first, whose helper registers the runner. */
static cairn_status gather_fields(cairn_ensemble *e, runner *p, crn_gathered *ret)
{
    crn_buf b = {0};
    crn_fields_put(&b, &p->fields);
    cairn_status rc = crn_comm_agree(e->comm, crn_buf_status(&b));
    if (rc == CAIRN_OK)
        rc = crn_comm_gatherv(e->comm, b.at, b.n, 0, ret);
    crn_buf_done(&b);
    return rc;
}

static cairn_status prepare(runner *p)
{
    CRN_TRY(crn_layout_init(&p->layout, &p->fields));
    CRN_TRY(crn_layout_first_rows(&p->layout, &p->first));
    return crn_weigher_create(p->study, &p->fields, &p->weigher);
}

static cairn_status begin(cairn_ensemble *e, runner *p)
{
    crn_gathered fields = {0};
    const uint32_t rank = (uint32_t)crn_comm_rank(e->comm);
    CRN_TRY(crn_member_pieces(e, &p->fields));
    CRN_TRY(crn_comm_agree(e->comm, prepare(p)));
    CRN_TRY(crn_comm_nodes(e->comm, (int)p->study->particle.node_size, &p->nodes));
    CRN_TRY(crn_comm_agree(e->comm, crn_member_split(e, p->nodes.node)));
    CRN_TRY(open_cache(e, p));
    CRN_TRY(gather_fields(e, p, &fields));
    cairn_status rc = start_helper(p, &fields, rank, (uint32_t)crn_comm_size(e->comm));
    crn_gathered_done(&fields);
    CRN_TRY(crn_comm_agree(e->comm, rc));
    if (rank == 0)
        crn_helper_ask(p->helper, NULL);
    return CAIRN_OK;
}

/* --- results -------------------------------------------------------------------------------- */

static void name_state(const runner *p, uint32_t member, char key[CRN_STATE_KEY])
{
    crn_helper_key(member, (uint32_t)p->nodes.node, (uint32_t)p->nodes.nnodes, key);
}

/* The fields for the calls of <cairn/state.h>. */
static size_t name_fields(const cairn_ensemble *e, const runner *p, cairn_field *field)
{
    for (size_t i = 0; i < e->field.n; i++) {
        const crn_state_field *f = &p->fields.at[i];
        field[i] = e->field.at[i]->piece;
        field[i].ndims = f->ndims;
        memcpy(field[i].global, f->global, sizeof f->global);
        memcpy(field[i].offset, f->offset, sizeof f->offset);
        memcpy(field[i].count, f->count, sizeof f->count);
    }
    return e->field.n;
}

typedef struct search {
    cairn_type type;
    const void *data;
    uint64_t first, row; /* row: the first that is not finite; UINT64_MAX */
} search;

static void look(void *arg, uint64_t row, size_t at)
{
    search *x = arg;
    if (x->row == UINT64_MAX && !isfinite(crn_element_get(x->type, x->data, at)))
        x->row = row;
}

static cairn_status check_finite(const cairn_ensemble *e, const runner *p)
{
    for (size_t f = 0; f < e->field.n; f++) {
        search x = {p->fields.at[f].type, e->field.at[f]->piece.data, p->first[f], UINT64_MAX};
        if (x.first == UINT64_MAX)
            continue;
        crn_piece_rows(&p->fields.at[f], x.first, look, &x);
        CRN_FAIL_IF(x.row != UINT64_MAX, CAIRN_EINVAL,
                    "element %" PRIu64 " of field '%s' is not finite", x.row - x.first,
                    e->field.at[f]->name);
    }
    return CAIRN_OK;
}

/* Put the state into the cache; *ret is under way, or NULL. Collective. */
static cairn_status keep(cairn_ensemble *e, runner *p, cairn_transfer **ret)
{
    char key[CRN_STATE_KEY];
    cairn_field field[CRN_MEMBER_FIELDS];
    crn_chosen chosen = {0};
    const size_t n = name_fields(e, p, field);
    name_state(p, p->task.member, key);
    if (is_root(p))
        crn_helper_await_put(p->helper);
    if ((p->task.rank & CRN_TASK_CODED) != 0)
        CRN_TRY(crn_comm_agree(e->comm, crn_dynamic_choose(p->study->dir, e->comm, p->put,
                                                           p->task.cycle, p->task.member, field, n,
                                                           &chosen)));
    int rc = cairn_state_put_begin(p->put, key, p->task.cycle, NULL, field, n, ret);
    if (rc == CAIRN_EMISMATCH) { /* of an earlier runner with other pieces */
        if (is_root(p))
            (void)!cairn_state_drop(p->get, key, p->task.cycle);
        rc = cairn_state_put_begin(p->put, key, p->task.cycle, NULL, field, n, ret);
    }
    if (rc >= 0 && *ret && p->nodes.nlocal > 1) { /* all of a group must wait for its put */
        rc = cairn_transfer_wait(*ret);
        *ret = NULL;
    }
    if (rc < 0)
        rc = crn_fail((cairn_status)rc, "%s", cairn_error_text());
    crn_dynamic_settle(&chosen); /* the weight is that of what a reader gets */
    return crn_comm_agree(e->comm, rc < 0 ? (cairn_status)rc : CAIRN_OK);
}

/* The state is kept and weighed; or the reason why there is none, and whose it is. */
static cairn_status hand_over(cairn_ensemble *e, runner *p, uint64_t *ret_blame)
{
    cairn_transfer *put = NULL;
    double logw = 0;
    *ret_blame = CRN_DONE_REFUSED;
    CRN_FAIL_IF(p->refusal[0], CAIRN_EINVAL, "the model refuses: %.200s", p->refusal);
    CRN_TRY(crn_comm_agree(e->comm, check_finite(e, p)));
    *ret_blame = CRN_DONE_STORAGE;
    const uint64_t begun = crn_now_ns();
    CRN_TRY(keep(e, p, &put));
    p->waited_ns += crn_now_ns() - begun;
    cairn_status rc = p->task.cycle > 0 ? crn_weigh(p->weigher, e, p->task.cycle, &logw) : CAIRN_OK;
    if (rc == CAIRN_OK && (isnan(logw) || logw == INFINITY)) {
        *ret_blame = CRN_DONE_REFUSED;
        rc = crn_fail(CAIRN_EINVAL,
                      "its log-weight is %s: no number can be made of its state where "
                      "it was observed",
                      isnan(logw) ? "not a number" : "infinite");
    }
    if (is_root(p))
        crn_helper_made(p->helper, p->task.cycle, p->task.member, rc < 0 ? NAN : logw, put);
    return rc;
}

/* Announce what became of the task, and ask for the next. */
static void announce(runner *p, cairn_status rc, uint64_t blame)
{
    crn_wire w = p->task;
    w.kind = CRN_WIRE_DONE;
    w.number = rc < 0 ? blame : CRN_DONE_WELL;
    w.more = p->waited_ns;
    w.seconds = p->took_s;
    snprintf(w.text, sizeof w.text, "%.300s", rc < 0 ? crn_err_peek()->text : "");
    p->waited_ns = 0;
    crn_helper_ask(p->helper, &w);
}

static void finish_task(cairn_ensemble *e, runner *p)
{
    uint64_t blame;
    p->took_s = (double)(crn_now_ns() - p->begun_ns) / 1e9;
    cairn_status rc = hand_over(e, p, &blame);
    if (crn_comm_rank(e->comm) == 0)
        announce(p, rc, blame);
}

/* --- tasks ---------------------------------------------------------------------------------- */

typedef struct shift {
    cairn_type type;
    void *data;
    const crn_particle_task *t;
    crn_rng_key key;
} shift;

static void add_noise(void *arg, uint64_t row, size_t at)
{
    const shift *x = arg;
    double v = crn_element_get(x->type, x->data, at);
    if (x->t->nrows > 0)
        v += x->t->row[row];
    if (x->t->deviation > 0)
        v += x->t->deviation * crn_rng_normal_at(&x->key, row);
    crn_element_set(x->type, x->data, at, v);
}

/* Move a copy away from its parent, as the task says. */
static void move(cairn_ensemble *e, runner *p, const crn_wire *task, const crn_particle_task *t)
{
    const crn_rng_key key = {p->study->seed, t->purpose, task->cycle - 1, task->member};
    for (size_t f = 0; f < e->field.n && (t->deviation > 0 || t->nrows > 0); f++) {
        shift x = {p->fields.at[f].type, e->field.at[f]->piece.data, t, key};
        if (p->first[f] != UINT64_MAX)
            crn_piece_rows(&p->fields.at[f], p->first[f], add_noise, &x);
    }
}

/* Copy the parent from the cache; from the shelf, where the cache has it no longer or damaged. */
static cairn_status copy_parent(cairn_ensemble *e, runner *p, const crn_wire *task, uint32_t parent,
                                bool again)
{
    char key[CRN_STATE_KEY];
    cairn_field field[CRN_MEMBER_FIELDS];
    const size_t n = name_fields(e, p, field);
    cairn_status rc = CAIRN_OK;
    if (is_root(p))
        rc = crn_helper_need(p->helper, task->cycle - 1, parent, task->text, again);
    CRN_TRY(crn_comm_agree(e->comm, rc));
    name_state(p, parent, key);
    int got = cairn_state_get(p->get, key, task->cycle - 1, field, n);
    rc = got < 0 ? crn_fail((cairn_status)got, "%s", cairn_error_text()) : CAIRN_OK;
    rc = crn_comm_agree(e->comm, rc);
    if (rc < 0 && !again && (rc == CAIRN_ECORRUPT || rc == CAIRN_ENOTFOUND || rc == CAIRN_EIO))
        return copy_parent(e, p, task, parent, true);
    return rc;
}

/* 1: the model may go on; 0: it may not, and the server knows. */
static int begin_task(cairn_ensemble *e, runner *p, const crn_wire *task, const crn_buf *data,
                      cairn_task *ret)
{
    crn_particle_task t = {0};
    const uint64_t begun = crn_now_ns();
    const bool own = (task->rank & CRN_TASK_OWN_STATE) != 0;
    cairn_status rc = own ? CAIRN_OK : crn_particle_task_get(data, p->layout.nrows, &t);
    p->task = *task;
    p->refusal[0] = 0;
    p->begun_ns = begun;
    if (rc == CAIRN_OK && !own)
        rc = copy_parent(e, p, task, t.parent, false);
    p->waited_ns += crn_now_ns() - begun;
    if (rc == CAIRN_OK)
        move(e, p, task, &t);
    crn_particle_task_done(&t);
    if (rc < 0) {
        p->took_s = 0;
        if (crn_comm_rank(e->comm) == 0)
            announce(p, rc, CRN_DONE_STORAGE);
        return 0;
    }
    p->begun_ns = crn_now_ns();
    *ret = (cairn_task){.struct_bytes = sizeof *ret,
                        .nsteps = task->number,
                        .step = task->more,
                        .cycle = task->cycle,
                        .member = task->member,
                        .attempt = task->attempt};
    return 1;
}

/* What all ranks are to do next. Collective. */
static cairn_status next_order(cairn_ensemble *e, runner *p, crn_wire *task, crn_buf *data,
                               bool *ret_over)
{
    uint64_t v[2] = {0, 0};
    unsigned char *bytes = NULL;
    if (crn_comm_rank(e->comm) == 0) {
        v[0] = !crn_helper_await_task(p->helper, task, data);
        v[1] = data->n;
    }
    CRN_TRY(crn_comm_bcast(e->comm, v, sizeof v, 0));
    *ret_over = v[0] != 0;
    if (*ret_over)
        return CAIRN_OK;
    CRN_TRY(crn_comm_bcast(e->comm, task, sizeof *task, 0));
    CRN_TRY(crn_comm_agree(e->comm, crn_alloc(&bytes, v[1])));
    if (v[1] > 0 && crn_comm_rank(e->comm) == 0)
        memcpy(bytes, data->at, v[1]);
    cairn_status rc = v[1] > 0 ? crn_comm_bcast(e->comm, bytes, v[1], 0) : CAIRN_OK;
    if (rc == CAIRN_OK && crn_comm_rank(e->comm) > 0)
        crn_put_bytes(data, bytes, v[1]);
    free(bytes);
    return rc;
}

int crn_particle_next(cairn_ensemble *e, cairn_task *ret)
{
    runner *p = e->particle;
    int got = 0;
    if (!e->begun)
        CRN_TRY(begin(e, p));
    else
        finish_task(e, p);
    e->begun = true;
    while (got == 0) {
        crn_wire task;
        crn_buf data = {0};
        cairn_status rc = next_order(e, p, &task, &data, &p->over);
        if (rc == CAIRN_OK && !p->over)
            got = begin_task(e, p, &task, &data, ret);
        crn_buf_done(&data);
        if (rc < 0 || p->over)
            return rc;
    }
    return got;
}
