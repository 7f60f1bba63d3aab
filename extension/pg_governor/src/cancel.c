/*
 * cancel.c
 *		Cancels one transaction of another process, and no other one.
 *
 * A signal may come when the transaction that it is for has ended, and would cancel the next one.  So the
 * sender says SENDING first, then looks whether the session's word is the one that it means, then sends,
 * and then says SENT.  The session changes its word when its transaction ends, and looks for SENDING and SENT after
 * that: one of the two sees the other.  A session that sees a cancel takes it away before its next
 * transaction.
 */
#include "compat.h"

#include <signal.h>
#include <unistd.h>

#include "cancel.h"
#include "delay.h"
#include "session.h"
#include "word.h"

typedef enum CancelState
{
	CANCEL_NONE,
	CANCEL_SENDING,
	CANCEL_SENT,
} CancelState;

/* A sender needs some microseconds; one that was stopped in between is not waited for. */
#define SENDING_LOOK_US 50
#define SENDING_LOOKS 2000

/* Whether its transaction was asked to end already. */
bool
governor_cancel_is_asked(const GovernorSession *session)
{
	return pg_atomic_read_u32((pg_atomic_uint32 *) &session->cancel) != CANCEL_NONE;
}

/*
 * Cancels the transaction of the session whose word was seen; false if that has ended.  The numbers are for
 * the error that its client gets.
 */
bool
governor_cancel_send(int index, uint64 seen, uint32 slots, uint32 waiters)
{
	GovernorSession *session = governor_session_at(index);
	bool		sent = false;

	session->cancel_slots = slots;
	session->cancel_waiters = waiters;
	pg_atomic_exchange_u32(&session->cancel, CANCEL_SENDING);
	GOVERNOR_DELAY();
	if (pg_atomic_read_u64(governor_word_at(index)) == seen && session->may_be_cancelled && session->pid > 0)
	{
		GOVERNOR_DELAY();
		sent = kill(session->pid, SIGINT) == 0;
		GOVERNOR_DELAY();
	}
	pg_write_barrier();
	pg_atomic_write_u32(&session->cancel, sent ? CANCEL_SENT : CANCEL_NONE);
	return sent;
}

/* This session's transaction is over, and its word has changed. */
void
governor_cancel_settle(void)
{
	pg_atomic_uint32 *cancel = &governor_my_session->cancel;

	if (pg_atomic_read_u32(cancel) == CANCEL_NONE)
		return;
	for (int i = 0; i < SENDING_LOOKS && pg_atomic_read_u32(cancel) == CANCEL_SENDING; i++)
		pg_usleep(SENDING_LOOK_US);
	if (pg_atomic_read_u32(cancel) == CANCEL_NONE)
		return;
	/* What was sent before is delivered by the end of a system call. */
	(void) getppid();
	QueryCancelPending = false;
	pg_atomic_write_u32(cancel, CANCEL_NONE);
}

/* The client, and the log, are told why: the server itself calls it the request of a user. */
void
governor_cancel_explain(ErrorData *error)
{
	if (error->sqlerrcode != ERRCODE_QUERY_CANCELED || error->elevel != ERROR || error->hint != NULL ||
		governor_my_session == NULL || pg_atomic_read_u32(&governor_my_session->cancel) == CANCEL_NONE)
		return;
	error->hint = MemoryContextStrdup(error->assoc_context,
									  psprintf("pg_governor cancelled it, since it kept %u slots while %u sessions queued or were let in beyond the limit (pg_governor.cancel_culprit).",
											   governor_my_session->cancel_slots, governor_my_session->cancel_waiters));
}
