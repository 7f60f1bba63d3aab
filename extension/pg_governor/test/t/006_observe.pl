# What a DBA can see: who would have to wait, what limit is advised, and why gates
# are open.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::RealBin;
use GovernorTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = governed_node('observe', <<'EOC');
pg_governor.transaction_limit = 1
pg_governor.mode = observe
pg_governor.queue_timeout = 0
pg_governor.discount_time = 0
pg_governor.stall_time = 0
EOC
sub health { return $node->safe_psql('postgres', 'SELECT mode, gates, why_open FROM pg_governor_health') }
is(health(), 'observe|open|pg_governor.mode is observe', 'health says so');

# nobody waits, and the views say who would
my @sessions = map { holder($node) } 1 .. 3;
is(gate_counts($node, 'taken, queued'), '1|2', 'sessions beyond the limit would queue');
is($node->safe_psql('postgres', 'SELECT bool_and(observed), count(*) FROM pg_governor_queue'),
	't|2', 'and do not');
$sessions[0]->ask('COMMIT');
is(gate_counts($node, 'taken, queued, admits_turn, waits'), '1|1|1|1', 'a slot goes to the next one');
$sessions[2]->ask('COMMIT');
is(gate_counts($node, 'taken, queued, waits, cancelled'), '1|0|2|0',
	'who ends before its turn would have waited at least so long');
$sessions[1]->ask('COMMIT');
nothing_left($node, 'observe');

# advice from what the monitor sampled
$node->safe_psql('postgres', 'SELECT pg_governor_reset()');
$_->ask('BEGIN') for @sessions;
$node->poll_query_until('postgres', "SELECT bool_or(sessions_max = 3 AND suggested_limit IS NULL)
	FROM pg_governor_advice()") or die;
is($node->safe_psql('postgres', "SELECT (seconds < 10) = (reason ~ '^Sampled for \\d+\\.\\d s; at least 10 s are needed\\.\$')
	FROM pg_governor_advice() WHERE class = 'transaction'"), 't', 'no advice after too short a time');

# what meets no gate is sampled too, and never called idle
my $queries = $node->basedir . '/queries.sql';
append_to_file($queries, "SELECT count(*) FROM generate_series(1, 20000);\n");
my $load = IPC::Run::start([ 'pgbench', '-n', '-c', 8, '-T', 600, '-f', $queries, $node->connstr('postgres') ],
	'>', \my $out, '2>', \my $err);
ok($node->poll_query_until('postgres', "SELECT sessions_max >= 4 AND sessions_avg > 1 AND seconds >= 10
	FROM pg_governor_advice() WHERE class IS NULL"), 'sessions that meet no gate are sampled');
like($node->safe_psql('postgres', 'SELECT reason FROM pg_governor_advice() WHERE class IS NULL'),
	qr/^Up to \d+ sessions worked at once that met no gate, \d+\.\d on average/, 'and told of');
$load->kill_kill;
unlike($node->safe_psql('postgres', 'SELECT reason FROM pg_governor_advice() WHERE class IS NULL'), qr/Never more/,
	'no other claim is made of them');
cmp_ok($node->safe_psql('postgres', 'SELECT cpus FROM pg_governor_health'), '>=', 1, 'CPUs that may be used');

# from observing to enforcing: who runs goes on
set_all($node, mode => 'enforce');
$node->poll_query_until('postgres', 'SELECT gates FROM pg_governor_health', 'closed') or die;
my $waiter = session($node);
$waiter->tell('BEGIN');
$node->poll_query_until('postgres', 'SELECT count(*) FROM pg_governor_queue WHERE NOT observed', '1')
  or die;
pass('a new one waits');
$sessions[0]->ask('SELECT 1');

# and back: who waits is let in
set_all($node, mode => 'observe');
$waiter->settle;
pass('who waits is let in');
$_->ask('COMMIT') for (@sessions, $waiter);
nothing_left($node, 'back to observing');

# why gates are open
set_all($node, mode => 'enforce', transaction_limit => 0);
$node->poll_query_until('postgres', 'SELECT why_open FROM pg_governor_health', 'no limit is set') or die;
set_all($node, enabled => 'off');
is(health(), 'enforce|open|pg_governor.enabled is off', 'disabled');
set_all($node, enabled => 'on', transaction_limit => 1);

# no background worker is free: nobody waits, and it is said
$node->append_conf('postgresql.conf', 'max_worker_processes = 0');
$node->restart;
like(slurp_file($node->logfile),
	qr/WARNING:.*no background worker is free for the monitor, so every gate stays open/,
	'said at start');
like(health(), qr/^enforce\|open\|the monitor is not running/, 'and in the view');
@sessions = map { holder($node) } 1 .. 2;
pass('nobody waits');

$node->stop;
done_testing();
