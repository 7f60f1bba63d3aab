/*
 * standing.c
 *		What this process is to the governor: exempt, governed, or privileged.
 */
#include "compat.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "libpq/libpq-be.h"
#include "replication/walsender.h"
#include "storage/procarray.h"
#include "utils/snapmgr.h"

#include "list.h"
#include "standing.h"

static bool is_loopback(void);
static int	peer_pid(int sock);
static bool is_superuser(Oid session_user);
static bool is_listed(const GovernorRoleList *roles, Oid session_user);

GovernorStanding
governor_find_standing(Oid session_user)
{
	if (MyBackendType != B_BACKEND || MyProcPort == NULL || am_walsender || is_loopback() ||
		is_listed(governor_exempt_roles, session_user))
		return GOVERNOR_EXEMPT;
	return is_superuser(session_user) || is_listed(governor_reserved_roles, session_user) ?
		GOVERNOR_PRIVILEGED : GOVERNOR_GOVERNED;
}

/*
 * A connection from another session of this server, as dblink and postgres_fdw
 * make it: that session may have a slot, and waits for us.  Only a Unix socket
 * tells who is at the other end; over TCP the discount for waits helps.
 */
static bool
is_loopback(void)
{
	int			pid = peer_pid(MyProcPort->sock);

	return pid > 0 && BackendPidGetProc(pid) != NULL;
}

/* The process at the other end of a Unix socket; 0 if the system does not tell. */
static int
peer_pid(int sock)
{
#if defined(__linux__) && defined(SO_PEERCRED)
	struct ucred peer;
	socklen_t	length = sizeof(peer);

	return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 ? peer.pid : 0;
#elif defined(__OpenBSD__) && defined(SO_PEERCRED)
	struct sockpeercred peer;
	socklen_t	length = sizeof(peer);

	return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 ? peer.pid : 0;
#elif defined(__APPLE__) && defined(LOCAL_PEERPID)
	pid_t		peer;
	socklen_t	length = sizeof(peer);

	return getsockopt(sock, SOL_LOCAL, LOCAL_PEERPID, &peer, &length) == 0 ? peer : 0;
#else
	return 0;
#endif
}

/* Of the login role, which SET ROLE does not change.  No snapshot of the look into the catalogs stays. */
static bool
is_superuser(Oid session_user)
{
	bool		found = superuser_arg(session_user);

	InvalidateCatalogSnapshot();
	return found;
}

/*
 * The name of the role that has logged in is known without a look into the catalogs,
 * which would take a snapshot; another one is there after SET SESSION AUTHORIZATION.
 */
static bool
is_listed(const GovernorRoleList *roles, Oid session_user)
{
	const char *name = MyProcPort->user_name;

	if (roles == NULL || roles->count == 0)
		return false;
	if (session_user != GetAuthenticatedUserId())
	{
		name = GetUserNameFromId(session_user, true);
		InvalidateCatalogSnapshot();
	}
	for (int i = 0; name != NULL && i < roles->count; i++)
		if (strcmp(roles->names[i], name) == 0)
			return true;
	return false;
}
