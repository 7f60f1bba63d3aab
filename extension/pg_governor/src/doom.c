/*
 * doom.c
 *		A transaction that could not get its slot fails at its first statement.
 *
 * An error in BEGIN leaves no transaction, and a client that goes on after it commits
 * its statements one by one.  So BEGIN succeeds, and the error is raised inside of the
 * block, where it makes the block fail as a whole.
 */
#include "compat.h"

#include "utils/memutils.h"

#include "doom.h"

static ErrorData *doom = NULL;
static MemoryContext context = NULL;

static MemoryContext doom_context(void);

/*
 * Takes over the error that is being handled.  It came from a wait, which holds nothing
 * that the end of a transaction would have to release.
 */
void
governor_doom_set(MemoryContext callers)
{
	governor_doom_remember();
	MemoryContextSwitchTo(callers);
	FlushErrorState();
	/* A warning looks for another cancel first, which would fail BEGIN after all. */
	HOLD_INTERRUPTS();
	ereport(WARNING,
			(errcode(doom->sqlerrcode),
			 errmsg("this transaction will fail: %s", doom->message),
			 errhint("Its first statement raises the error.")));
	RESUME_INTERRUPTS();
}

/* The error that is being handled is raised, and by every further statement of the block as well. */
void
governor_doom_remember(void)
{
	MemoryContext callers = MemoryContextSwitchTo(doom_context());

	doom = CopyErrorData();
	MemoryContextSwitchTo(callers);
}

static MemoryContext
doom_context(void)
{
	if (context == NULL)
		context = AllocSetContextCreate(TopMemoryContext, "pg_governor", ALLOCSET_SMALL_SIZES);
	return context;
}

/* Before a statement of the block does anything: each one fails, also after an error that was caught. */
void
governor_doom_check(void)
{
	if (doom != NULL)
		ReThrowError(doom);
}

/* The transaction is over. */
void
governor_doom_forget(void)
{
	doom = NULL;
	if (context != NULL)
		MemoryContextReset(context);
}
