/*
 * hand.c
 *		What an administrator can do with one session by hand.
 */
#include "compat.h"

#include "utils/builtins.h"

#include "gate.h"
#include "rows.h"
#include "state.h"
#include "word.h"

PG_FUNCTION_INFO_V1(pg_governor_admit);
GOVERNOR_FORMER_NAME(pg_governor_admit, _0_3);
PG_FUNCTION_INFO_V1(pg_governor_evict);
GOVERNOR_FORMER_NAME(pg_governor_evict, _0_3);
PG_FUNCTION_INFO_V1(pg_governor_move);
GOVERNOR_FORMER_NAME(pg_governor_move, _0_3);

static int	find_session(int pid);
static bool order(int session, GovernorOrder order);

/* Lets a session in that queues.  False if it does not. */
Datum
pg_governor_admit(PG_FUNCTION_ARGS)
{
	int			session = find_session(PG_GETARG_INT32(0));

	PG_RETURN_BOOL(session != GOVERNOR_NOBODY && governor_gate_run_anyway(session, GOVERNOR_BY_HAND));
}

/* Ends the wait of a session with an error.  False if it does not queue. */
Datum
pg_governor_evict(PG_FUNCTION_ARGS)
{
	int			session = find_session(PG_GETARG_INT32(0));

	PG_RETURN_BOOL(session != GOVERNOR_NOBODY && order(session, GOVERNOR_ORDER_EVICT));
}

/*
 * The session's further transactions are of another pool, and its wait too; without a
 * pool of the one that its settings say.  False if there is no such session.
 */
Datum
pg_governor_move(PG_FUNCTION_ARGS)
{
	int			session;
	int			pool;

	governor_rows_need_library();
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	pool = PG_ARGISNULL(1) ? GOVERNOR_NOBODY : governor_rows_pool(PG_GETARG_TEXT_PP(1));
	session = find_session(PG_GETARG_INT32(0));
	if (session == GOVERNOR_NOBODY)
		PG_RETURN_BOOL(false);
	pg_atomic_exchange_u32(&governor_session_at(session)->moved_to, pool + 1);
	order(session, GOVERNOR_ORDER_MOVE);
	if (pg_atomic_read_u64(&governor_session_at(session)->paused_since) != 0)
		SetLatch(&ProcGlobal->allProcs[session].procLatch);
	PG_RETURN_BOOL(true);
}

static int
find_session(int pid)
{
	governor_rows_need_library();
	for (int i = 0; i < governor->session_count; i++)
		if (pid > 0 && governor_session_at(i)->pid == pid)
			return i;
	return GOVERNOR_NOBODY;
}

/* An order that comes too late is forgotten when the session queues the next time. */
static bool
order(int session, GovernorOrder order)
{
	uint64		word = pg_atomic_read_u64(governor_word_at(session));

	if (governor_word_state(word) != GOVERNOR_QUEUED || (word & GOVERNOR_OBSERVED))
		return false;
	pg_atomic_exchange_u32(&governor_session_at(session)->order, order);
	SetLatch(&ProcGlobal->allProcs[session].procLatch);
	return true;
}
