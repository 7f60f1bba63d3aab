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

#include "list.h"
#include "standing.h"

static bool is_loopback(void);
static int	peer_pid(int sock);
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

/* Without a look into the catalogs, which would take a snapshot. */
static bool
is_privileged(void)
{
	GovernorRoleList *roles = governor_listed_roles;

	if (governor_session_is_superuser())
		return true;
	if (roles == NULL || MyProcPort->user_name == NULL)
		return false;
	for (int i = 0; i < roles->count; i++)
		if (strcmp(roles->names[i], MyProcPort->user_name) == 0)
			return true;
	return false;
}
