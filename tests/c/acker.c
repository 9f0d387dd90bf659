/* The acker against a naive model: every tree a set of edges, all looked through from one end to the other. */
#include "cython_core/acking/acker.h"
#include "cython_core/acking/tree_roots.h"
#include "cython_core/acking/tree_times.h"

#include "check.h"

#define TREES 1500
#define MOST_EDGES 6
#define STEPS 40000
#define MILLI UINT64_C(1000000)

typedef struct {
    ps_root *root;
    uint64_t attempt, deadline;
    uint64_t edges[MOST_EDGES];
    int count;
    int waiting;                /* of the edges, those of tuples in queues */
    int group;                  /* trees of one group have one verdict */
    int spout;
    enum ps_verdict verdict;    /* as the model has it */
    bool heard;
    bool rests;                 /* has no tuples before its deadline, and is emitted then */
} tree;

static tree trees[TREES];
static int made;
static unsigned long long state;
static ps_acker acker;
static ps_spout_roots spouts[2];
static bool by_progress;
static int turn_of;             /* the spout whose turn is under way, and its first tree; -1: none */
static int turn_from;
static uint64_t turn_began;

static uint64_t drawn(uint64_t below) { return check_random(&state) % below; }

static bool is_open(const tree *t) { return t->verdict == PS_ROOT_OPEN; }

static void settle(tree *t, enum ps_verdict verdict) {
    enum ps_verdict others = verdict == PS_ROOT_ACKED ? PS_ROOT_ACKED : PS_ROOT_FAILED_WITH_GROUP;
    int group = t->group;
    for (int i = 0; i < made; i++)
        if (trees[i].group == group && is_open(&trees[i])) trees[i].verdict = &trees[i] == t ? verdict : others;
}

static void complete_where_done(tree *t) {
    for (int i = 0; i < made; i++)
        if (trees[i].group == t->group && trees[i].count > 0) return;
    settle(t, PS_ROOT_ACKED);
}

static uint64_t deadline_now(void) { return acker.timeout ? acker.now + acker.timeout : PS_NO_TIMEOUT; }

static void open_one(void) {
    if (made == TREES) return;
    tree *t = &trees[made];
    uint64_t edge = ps_acker_edge(&acker);
    t->spout = (int)drawn(2);
    t->root = ps_acker_open(&acker, &spouts[t->spout], edge);
    CHECK(t->root != NULL);
    t->attempt = t->root->attempt;
    CHECK(t->attempt == (uint64_t)made + 1);
    t->deadline = deadline_now();
    t->edges[0] = edge;
    t->count = 1;
    t->waiting = 0;
    t->group = made;
    t->verdict = PS_ROOT_OPEN;
    t->heard = t->rests = false;
    made++;
}

static tree *any(void) { /* mostly a young one */
    if (!made) return NULL;
    int back = (int)drawn(drawn(8) ? 40 : (uint64_t)made);
    return &trees[back < made ? made - 1 - back : 0];
}

static void add_edge(tree *t) {
    if (t->count == 0 || t->count == MOST_EDGES || t->rests) return; /* only what has an open edge makes another */
    uint64_t edge = ps_acker_edge(&acker);
    ps_acker_add(t->root, t->attempt, edge);
    t->edges[t->count++] = edge;
    t->waiting++;
}

static void take(tree *t) {
    if (t->waiting == 0) return;
    t->waiting--;
    CHECK(ps_acker_take(&acker, t->root, t->attempt) == is_open(t));
    if (is_open(t) && t->deadline < deadline_now()) t->deadline = deadline_now();
}

static void gather(tree *t) { /* what was taken waits once more */
    if (t->count == t->waiting || t->rests) return;
    ps_acker_wait(t->root, t->attempt);
    t->waiting++;
}

static void ack(tree *t) {
    if (t->count == t->waiting || t->rests) return;
    int i = (int)drawn((uint64_t)t->count);
    uint64_t edge = t->edges[i];
    bool open = is_open(t);
    t->edges[i] = t->edges[--t->count];
    if (ps_acker_ack(&acker, t->root, t->attempt, edge)) {
        CHECK(open && t->count == 0 && !t->root->spout->notifies_acks);
        t->heard = true;
        ps_acker_release(&acker, t->root);
    }
    if (!open) return;
    if (by_progress) t->deadline = deadline_now();
    if (t->count == 0) complete_where_done(t);
}

static void fail(tree *t) {
    if (t->count == 0 || t->rests) return;
    bool failed_with_group = t->root->failed_with_group == t->attempt; /* and not notified yet */
    bool verdict = t->verdict == PS_ROOT_FAILED_WITH_GROUP || t->verdict == PS_ROOT_TIMED_OUT;
    CHECK(!failed_with_group || (!t->heard && verdict));
    CHECK(failed_with_group || t->heard || t->verdict != PS_ROOT_FAILED_WITH_GROUP);
    CHECK(ps_acker_fail(&acker, t->root, t->attempt, PS_ROOT_FAILED) == (is_open(t) || failed_with_group));
    if (is_open(t)) settle(t, PS_ROOT_FAILED);
    else if (failed_with_group) t->verdict = PS_ROOT_FAILED;
}

/* A root that is emitted later. */
static void rest_one(void) {
    if (made == TREES) return;
    open_one();
    tree *t = &trees[made - 1];
    t->rests = true;
    t->deadline = acker.now + 1 + drawn(20 * MILLI);
    CHECK(ps_acker_rest(&acker, t->root, t->deadline) == 0);
    CHECK(ps_acker_keeps_time(&acker));
    if (!ps_acker_is_open(t->root, t->attempt)) t->verdict = PS_ROOT_RETRY_DUE; /* due within the wheel's tick */
}

static void tie(tree *one, tree *other) {
    if (one->rests || other->rests || one->count == 0 || other->count == 0 || !is_open(one) || !is_open(other)) return;
    CHECK(ps_acker_link(&acker, one->root, other->root) == 0);
    int from = other->group, to = one->group;
    for (int i = 0; i < made; i++)
        if (trees[i].group == from) trees[i].group = to;
}

static void reset(tree *t) {
    if (t->rests) return;
    CHECK(ps_acker_reset(&acker, t->root, t->attempt) == 0);
    if (is_open(t)) t->deadline = deadline_now();
}

static bool is_fresh(const tree *t) { return !t->rests && t->spout == turn_of && t - trees >= turn_from; }

static void begin_or_end_turn(void) {
    if (turn_of < 0) {
        turn_of = (int)drawn(2);
        turn_from = made;
        turn_began = acker.now;
        ps_acker_begin_turn(&acker, &spouts[turn_of]);
        return;
    }
    ps_acker_end_turn(&acker, &spouts[turn_of]);
    for (int i = turn_from; acker.now > turn_began && i < made; i++)
        if (is_open(&trees[i]) && is_fresh(&trees[i])) trees[i].deadline = deadline_now();
    turn_of = -1;
}

/* Nothing of it waits in a queue, and it waits for no tree that it is linked with. */
static bool time_runs(const tree *t) { return t->waiting == 0 && t->count > 0 && !is_fresh(t); }

/* Which of those that are due fails first, with its group, is the wheel's: the model takes what the acker says, and
 * checks that it had to be so. */
static void pass_time(uint64_t nanos) {
    uint64_t now = acker.now + nanos;
    ps_acker_expire(&acker, now);
    for (int i = 0; i < made; i++) {
        tree *t = &trees[i];
        if (!is_open(t)) continue;
        bool gone = t->root->attempt != t->attempt;
        bool due = false, all_done = true;
        for (int j = 0; j < made; j++)
            if (trees[j].group == t->group) {
                due = due || (trees[j].deadline <= now && time_runs(&trees[j]));
                all_done = all_done && trees[j].count == 0;
            }
        CHECK(!all_done);
        if (gone) CHECK(due); /* never early */
        bool late = t->deadline != PS_NO_TIMEOUT && t->deadline + 2 * MILLI <= now && time_runs(t);
        if (late) CHECK(gone); /* nor late by more than a tick and its rounding */
        if (gone) t->verdict = t->rests ? PS_ROOT_RETRY_DUE : PS_ROOT_TIMED_OUT;
    }
}

/* Every settled root comes once, with the model's verdict, and no open one does. */
static void hear(void) {
    for (int s = 0; s < 2; s++) {
        ps_root *root;
        while ((root = ps_acker_take_settled(&spouts[s]))) {
            tree *found = NULL;
            for (int i = made; i-- > 0 && !found;)
                if (trees[i].root == root && !trees[i].heard && !is_open(&trees[i])) found = &trees[i];
            CHECK(found != NULL);
            bool time = found->verdict == PS_ROOT_TIMED_OUT && root->verdict == PS_ROOT_FAILED_WITH_GROUP;
            CHECK(root->verdict == found->verdict || time);
            found->heard = true;
            ps_acker_release(&acker, root);
        }
        CHECK(spouts[s].settled == 0);
    }
}

static void check_all(void) {
    uint64_t open = 0, oldest = acker.next;
    size_t failed = 0;
    for (int i = made; i-- > 0;) {
        open += is_open(&trees[i]);
        if (is_open(&trees[i])) oldest = trees[i].attempt;
        failed += !is_open(&trees[i]) && trees[i].verdict != PS_ROOT_ACKED;
        CHECK(is_open(&trees[i]) == ps_acker_is_open(trees[i].root, trees[i].attempt));
        CHECK(is_open(&trees[i]) || trees[i].heard);
    }
    CHECK(spouts[0].open + spouts[1].open == open);
    CHECK(acker.oldest == oldest);
    CHECK(acker.failed_count == failed);
}

static void play(unsigned long long seed, uint64_t timeout, bool progress, bool hears) {
    state = seed * 0x9E3779B97F4A7C15u + 1;
    made = 0;
    by_progress = progress;
    turn_of = -1;
    memset(spouts, 0, sizeof spouts);
    spouts[0].notifies_acks = hears;
    spouts[1].notifies_acks = true;
    CHECK(ps_acker_init(&acker, seed, 5 * MILLI, MILLI) == 0);
    acker.timeout = timeout;
    acker.by_progress = progress;
    for (int step = 0; step < STEPS && made < TREES; step++) {
        tree *t = any(), *other = any();
        uint64_t what = drawn(100);
        if (!t || what < 10) open_one();
        else if (what < 12) rest_one();
        else if (what < 35) add_edge(t);
        else if (what < 57) take(t);
        else if (what < 58) gather(t);
        else if (what < 88) ack(t);
        else if (what < 90) fail(t);
        else if (what < 93) tie(t, other);
        else if (what < 94) reset(t);
        else if (what < 95) begin_or_end_turn();
        else if (what < 97) pass_time(drawn(3) ? drawn(3 * MILLI) : drawn(30 * MILLI));
        else hear();
        if (step % 97 == 0) {
            hear();
            check_all();
        }
    }
    if (turn_of >= 0) begin_or_end_turn();
    hear();
    check_all();
    if (timeout && !progress) {
        for (int i = 0; i < made; i++)
            while (trees[i].waiting > 0) take(&trees[i]);
        pass_time(timeout + 3 * MILLI);
        hear();
        check_all();
        CHECK(spouts[0].open + spouts[1].open == 0);
        CHECK(ps_acker_next_expiry(&acker) == PS_NO_TIMEOUT);
    }
    size_t failed = acker.failed_count;
    ps_acker_forget(&acker, 1);
    CHECK(acker.failed_count == failed);
    ps_acker_forget(&acker, acker.next);
    CHECK(acker.failed_count == 0);
    ps_acker_free(&acker);
}

/* Between two turns the coarse clock goes on: an ack that is progress counts from now. */
static void progress_is_dated_by_the_clock(void) {
    memset(spouts, 0, sizeof spouts);
    CHECK(ps_acker_init(&acker, 1, MILLI, MILLI) == 0);
    acker.timeout = 20 * MILLI;
    acker.by_progress = acker.coarse = true;
    uint64_t before = ps_coarse_nanos();
    ps_root *root = ps_acker_open(&acker, &spouts[0], 1);
    ps_acker_add(root, root->attempt, 2);
    CHECK(before > MILLI && root->deadline == 21 * MILLI);
    CHECK(ps_acker_ack(&acker, root, root->attempt, 1) == 0);
    CHECK(root->deadline >= before + 20 * MILLI);
    ps_acker_free(&acker);
}

int main(void) {
    progress_is_dated_by_the_clock();
    for (unsigned long long seed = 1; seed <= 4; seed++) {
        play(seed, 0, false, seed & 1);
        play(seed, 20 * MILLI, false, seed & 1);
        play(seed, 20 * MILLI, true, seed & 1);
    }
    puts("the acker agrees with its model");
    return 0;
}
