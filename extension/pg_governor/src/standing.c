/*
 * standing.c
 *		What this process is to the governor: exempt, governed, or privileged.
 */
#include "compat.h"

#include <sys/socket.h>

#include "libpq/libpq-be.h"
#include "replication/walsender.h"
#include "storage/procarray.h"
#include "utils/builtins.h"
#include "utils/varlena.h"

#include "settings.h"
#include "standing.h"

static bool is_loopback(void);
static bool is_privileged(void);

GovernorStanding
governor_find_standing(void)
{
	if (MyBackendType != B_BACKEND || MyProcPort == NULL || am_walsender || is_loopback())
		return GOVERNOR_EXEMPT;
	return is_privileged() ? GOVERNOR_PRIVILEGED : GOVERNOR_GOVERNED;
}

/*
 * A connection from another session of this server, as dblink and postgres_fdw
 * make it: that session may have a slot, and waits for us.  Only a Unix socket
 * tells who is at the other end; over TCP the discount for waits helps.
 */
static bool
is_loopback(void)
{
#ifdef SO_PEERCRED
	struct ucred peer;
	socklen_t	length = sizeof(peer);

	return getsockopt(MyProcPort->sock, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
		peer.pid > 0 && BackendPidGetProc(peer.pid) != NULL;
#else
	return false;
#endif
}

/* Without a look into the catalogs, which would take a snapshot. */
static bool
is_privileged(void)
{
	char	   *names;
	List	   *roles;
	ListCell   *cell;
	bool		found = false;

	if (governor_session_is_superuser())
		return true;
	if (governor_reserved_roles == NULL || governor_reserved_roles[0] == '\0' ||
		MyProcPort->user_name == NULL)
		return false;
	names = pstrdup(governor_reserved_roles);
	if (SplitIdentifierString(names, ',', &roles))
	{
		foreach(cell, roles)
			found = found || strcmp(lfirst(cell), MyProcPort->user_name) == 0;
		list_free(roles);
	}
	pfree(names);
	return found;
}
