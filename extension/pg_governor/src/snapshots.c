/*
 * snapshots.c
 *		A statement that waits before it executes gives up its snapshots, and takes new ones afterwards.
 *
 * It has read nothing by them yet, and its plan holds by its locks.  So it holds back no vacuum while it queues, and sees what
 * was committed meanwhile.  Whoever else has the same snapshot is told of the new one: the portal that runs the statement, and
 * its executor.  Where a transaction has one snapshot for all its statements, that has been taken for good.
 *
 * After an error nothing is taken anew: the transaction ends, or the subtransaction that these were of.
 */
#include "snapshots.h"

#include "access/xact.h"
#include "utils/snapmgr.h"

static bool is_active(Snapshot snapshot);

/*
 * From the top of the stack down: that of the executor, or of whoever has the client's own statement planned, which nobody else
 * points to; then that of the portal.
 */
void
governor_snapshots_give_up(GovernorSnapshots *snapshots)
{
	QueryDesc  *query = snapshots->query;
	Portal		portal = snapshots->portal;

	if (IsolationUsesXactSnapshot() || !ActiveSnapshotSet() || snapshots->of_query || snapshots->of_planner ||
		snapshots->of_portal)
		return;
	snapshots->of_query = query != NULL && is_active(query->snapshot);
	snapshots->of_planner = query == NULL && portal == NULL;
	if (snapshots->of_query || snapshots->of_planner)
		PopActiveSnapshot();
	snapshots->of_portal = portal != NULL && is_active(portal->portalSnapshot);
	if (snapshots->of_portal)
	{
		portal->portalSnapshot = NULL;
		PopActiveSnapshot();
	}
	snapshots->of_result = (snapshots->of_query || snapshots->of_portal) && portal != NULL && portal->holdSnapshot != NULL;
	if (snapshots->of_query)
	{
		UnregisterSnapshot(query->snapshot);
		query->snapshot = InvalidSnapshot;
	}
	if (snapshots->of_result)
	{
		UnregisterSnapshotFromOwner(portal->holdSnapshot, portal->resowner);
		portal->holdSnapshot = NULL;
	}
	/* What the parser has looked up is not looked up again by it. */
	InvalidateCatalogSnapshot();
}

void
governor_snapshots_renew(GovernorSnapshots *snapshots)
{
	Portal		portal = snapshots->portal;
	Snapshot	snapshot;

	if (!snapshots->of_query && !snapshots->of_planner && !snapshots->of_portal)
		return;
	snapshot = GetTransactionSnapshot();
	if (snapshots->of_result)
		portal->holdSnapshot = RegisterSnapshotOnOwner(snapshot, portal->resowner);
	if (snapshots->of_portal)
	{
		PushActiveSnapshotWithLevel(snapshot, portal->createLevel);
		portal->portalSnapshot = GetActiveSnapshot();
	}
	if (snapshots->of_query || snapshots->of_planner)
		PushActiveSnapshot(snapshot);
	if (snapshots->of_query)
		snapshots->query->snapshot = RegisterSnapshot(GetActiveSnapshot());
	snapshots->of_query = snapshots->of_planner = snapshots->of_portal = snapshots->of_result = false;
}

static bool
is_active(Snapshot snapshot)
{
	return snapshot != NULL && ActiveSnapshotSet() && GetActiveSnapshot() == snapshot;
}
