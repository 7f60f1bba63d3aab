/*
 * gate.c
 *		Takes slots, gives them back, and keeps the queue; state.h has the rules
 *		of locking.
 *
 * A slot that is given back while somebody queues is handed to the head of the
 * queue, so that no newcomer can be faster.  Where the limit was lowered in the
 * meantime, or sessions were let in beyond it, the slot disappears instead.
 */
#include "compat.h"

#include "utils/timestamp.h"

#include "gate.h"
#include "settings.h"
#include "state.h"

/* Sessions woken after one hold of the lock: bounds the time it is held. */
#define ADMIT_BATCH 32

#define ONE_TAKEN UINT64CONST(1)
#define ONE_QUEUED (UINT64CONST(1) << 32)

static GovernorOccupancy unpack(uint64 word);
static bool has_room(GovernorGate *gate, uint32 taken);
static bool take_slot_or_queue(GovernorGate *gate);
static void link_at_tail(GovernorGate *gate, int session, TimestampTz now);
static void unlink_session(GovernorGate *gate, int session);
static int	admit(GovernorGate *gate, int session, GovernorReason reason,
				  TimestampTz now);
static void count_wait(GovernorGateStats *stats, uint64 wait_us);
static void wake(int session);

GovernorOccupancy
governor_gate_occupancy(GovernorGate *gate)
{
	return unpack(pg_atomic_read_u64(&gate->occupancy));
}

/* Takes a slot without a lock, if one is free and nobody queues. */
GovernorEntry
governor_gate_enter(int gate_index)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	uint64		seen;

	if (pg_atomic_read_u32(&gate->capacity) == 0)
		return GOVERNOR_OPEN;
	seen = pg_atomic_read_u64(&gate->occupancy);
	for (;;)
	{
		GovernorOccupancy now = unpack(seen);

		if (now.queued > 0 || !has_room(gate, now.taken))
			return GOVERNOR_FULL;
		if (pg_atomic_compare_exchange_u64(&gate->occupancy, &seen, seen + ONE_TAKEN))
			return GOVERNOR_ENTERED;
	}
}

GovernorJoin
governor_gate_join(int gate_index, int session)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	TimestampTz now = GetCurrentTimestamp();
	GovernorJoin result = GOVERNOR_JOINED;

	LWLockAcquire(governor_gate_lock(gate_index), LW_EXCLUSIVE);
	if (governor_max_queue > 0 &&
		governor_gate_occupancy(gate).queued >= (uint32) governor_max_queue)
	{
		gate->stats.refused++;
		result = GOVERNOR_JOIN_REFUSED;
	}
	else if (take_slot_or_queue(gate))
		result = GOVERNOR_JOIN_ENTERED;
	else
		link_at_tail(gate, session, now);
	LWLockRelease(governor_gate_lock(gate_index));
	return result;
}

/*
 * Leaves the queue without a slot.  False if the session had been let in
 * meanwhile: then it has a slot, and has to give it back.
 */
bool
governor_gate_leave(int gate_index, int session)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	GovernorSession *self = governor_session_at(session);
	bool		queued;

	LWLockAcquire(governor_gate_lock(gate_index), LW_EXCLUSIVE);
	queued = pg_atomic_read_u32(&self->state) == GOVERNOR_QUEUED;
	if (queued)
	{
		unlink_session(gate, session);
		pg_atomic_fetch_sub_u64(&gate->occupancy, ONE_QUEUED);
		pg_atomic_write_u32(&self->state, GOVERNOR_IDLE);
		gate->stats.cancelled++;
	}
	LWLockRelease(governor_gate_lock(gate_index));
	return queued;
}

void
governor_gate_release(int gate_index)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	uint64		seen = pg_atomic_read_u64(&gate->occupancy);
	int			next = GOVERNOR_NOBODY;
	TimestampTz now;

	while (unpack(seen).queued == 0)
		if (pg_atomic_compare_exchange_u64(&gate->occupancy, &seen, seen - ONE_TAKEN))
			return;

	now = GetCurrentTimestamp();
	LWLockAcquire(governor_gate_lock(gate_index), LW_EXCLUSIVE);
	pg_atomic_fetch_sub_u64(&gate->occupancy, ONE_TAKEN);
	if (gate->head != GOVERNOR_NOBODY &&
		has_room(gate, governor_gate_occupancy(gate).taken))
		next = admit(gate, gate->head, GOVERNOR_TURN, now);
	LWLockRelease(governor_gate_lock(gate_index));

	pg_atomic_fetch_add_u64(&gate->progress, 1);
	wake(next);
}

/* Lets one session in beyond the limit, if it still queues at this gate. */
bool
governor_gate_run_anyway(int gate_index, int session, GovernorReason reason)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	GovernorSession *waiter = governor_session_at(session);
	TimestampTz now = GetCurrentTimestamp();
	int			admitted = GOVERNOR_NOBODY;

	LWLockAcquire(governor_gate_lock(gate_index), LW_EXCLUSIVE);
	if (pg_atomic_read_u32(&waiter->state) == GOVERNOR_QUEUED &&
		waiter->gate == gate_index)
		admitted = admit(gate, session, reason, now);
	LWLockRelease(governor_gate_lock(gate_index));
	wake(admitted);
	return admitted != GOVERNOR_NOBODY;
}

/* Lets in as many as there are slots for, or all if the gate is open. */
void
governor_gate_admit_free(int gate_index)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	int			admitted[ADMIT_BATCH];
	int			count;

	do
	{
		TimestampTz now = GetCurrentTimestamp();
		bool		open = pg_atomic_read_u32(&gate->capacity) == 0;

		count = 0;
		LWLockAcquire(governor_gate_lock(gate_index), LW_EXCLUSIVE);
		while (count < ADMIT_BATCH && gate->head != GOVERNOR_NOBODY &&
			   (open || has_room(gate, governor_gate_occupancy(gate).taken)))
			admitted[count++] = admit(gate, gate->head,
									  open ? GOVERNOR_OPENED : GOVERNOR_TURN, now);
		LWLockRelease(governor_gate_lock(gate_index));
		for (int i = 0; i < count; i++)
			wake(admitted[i]);
	} while (count == ADMIT_BATCH);
}

/* Lets the head of the queue in beyond the limit. */
bool
governor_gate_admit_head(int gate_index, GovernorReason reason)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	TimestampTz now = GetCurrentTimestamp();
	int			admitted = GOVERNOR_NOBODY;

	LWLockAcquire(governor_gate_lock(gate_index), LW_EXCLUSIVE);
	if (gate->head != GOVERNOR_NOBODY)
		admitted = admit(gate, gate->head, reason, now);
	LWLockRelease(governor_gate_lock(gate_index));
	wake(admitted);
	return admitted != GOVERNOR_NOBODY;
}

static GovernorOccupancy
unpack(uint64 word)
{
	return (GovernorOccupancy)
	{
		.taken = (uint32) word, .queued = (uint32) (word >> 32)
	};
}

static bool
has_room(GovernorGate *gate, uint32 taken)
{
	uint32		capacity = pg_atomic_read_u32(&gate->capacity);

	return capacity == 0 || taken < capacity;
}

/*
 * True: a slot was taken.  False: the session is counted as queued, in the same
 * atomic step that saw the gate full, so that no release can miss it.
 */
static bool
take_slot_or_queue(GovernorGate *gate)
{
	uint64		seen = pg_atomic_read_u64(&gate->occupancy);

	for (;;)
	{
		GovernorOccupancy now = unpack(seen);
		bool		room = now.queued == 0 && has_room(gate, now.taken);

		if (pg_atomic_compare_exchange_u64(&gate->occupancy, &seen,
										   seen + (room ? ONE_TAKEN : ONE_QUEUED)))
			return room;
	}
}

static void
link_at_tail(GovernorGate *gate, int session, TimestampTz now)
{
	GovernorSession *self = governor_session_at(session);

	self->since = now;
	self->next = GOVERNOR_NOBODY;
	self->previous = gate->tail;
	if (gate->tail == GOVERNOR_NOBODY)
	{
		gate->head = session;
		pg_atomic_write_u64(&gate->head_since, now);
	}
	else
		governor_session_at(gate->tail)->next = session;
	gate->tail = session;
	pg_atomic_write_u32(&self->state, GOVERNOR_QUEUED);
}

static void
unlink_session(GovernorGate *gate, int session)
{
	GovernorSession *self = governor_session_at(session);

	if (self->next == GOVERNOR_NOBODY)
		gate->tail = self->previous;
	else
		governor_session_at(self->next)->previous = self->previous;
	if (self->previous != GOVERNOR_NOBODY)
		governor_session_at(self->previous)->next = self->next;
	else
	{
		gate->head = self->next;
		if (gate->head != GOVERNOR_NOBODY)
			pg_atomic_write_u64(&gate->head_since, governor_session_at(gate->head)->since);
	}
}

/* From the queue into a slot.  Returns the session, which has to be woken. */
static int
admit(GovernorGate *gate, int session, GovernorReason reason, TimestampTz now)
{
	GovernorSession *waiter = governor_session_at(session);
	uint64		wait_us = now > waiter->since ? now - waiter->since : 0;

	unlink_session(gate, session);
	pg_atomic_fetch_add_u64(&gate->occupancy, ONE_TAKEN - ONE_QUEUED);
	gate->stats.admits[reason]++;
	count_wait(&gate->stats, wait_us);
	pg_atomic_fetch_add_u64(&waiter->waits, 1);
	pg_atomic_fetch_add_u64(&waiter->wait_us_total, wait_us);
	if (wait_us > pg_atomic_read_u64(&waiter->wait_us_max))
		pg_atomic_write_u64(&waiter->wait_us_max, wait_us);
	waiter->since = now;
	pg_write_barrier();
	pg_atomic_write_u32(&waiter->state, GOVERNOR_RUNNING);
	return session;
}

static void
count_wait(GovernorGateStats *stats, uint64 wait_us)
{
	uint64		wait_ms = wait_us / 1000;
	int			bucket = 0;

	while (wait_ms > 0 && bucket < GOVERNOR_WAIT_BUCKETS - 1)
	{
		wait_ms >>= 1;
		bucket++;
	}
	stats->wait_buckets[bucket]++;
	stats->waits++;
	stats->wait_us_total += wait_us;
	stats->wait_us_max = Max(stats->wait_us_max, wait_us);
}

static void
wake(int session)
{
	if (session != GOVERNOR_NOBODY)
		SetLatch(&ProcGlobal->allProcs[session].procLatch);
}
