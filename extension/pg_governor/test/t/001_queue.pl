# How a session waits, and every way in which it stops waiting.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::RealBin;
use GovernorTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = governed_node('queue', <<'EOC');
max_connections = 60
pg_governor.transaction_limit = 1
pg_governor.discount_time = 0
pg_governor.stall_time = 0
pg_governor.queue_timeout = 0
EOC

my $script = $node->basedir . '/empty.sql';
append_to_file($script, "BEGIN;\nSELECT 1;\nCOMMIT;\n");

# cancel
my $holder = holder($node);
my $waiter = session($node);
$waiter->tell('BEGIN');
wait_for_queue($node, 1);
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');
is( $node->safe_psql('postgres',
		"SELECT state, wait_event_type, wait_event, backend_xmin IS NULL
		FROM pg_stat_activity WHERE pid = $waiter->{pid}"),
	'active|' . ($version >= 170000 ? 'Extension' : 'LWLock') . '|GovernorQueue|t',
	'how a waiter at BEGIN shows, without a snapshot');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($waiter->{pid})");
$waiter->settle;
like($waiter->errors, qr/WARNING:  this transaction will fail: canceling statement due to user request/,
	'a waiter can be cancelled');
wait_for_queue($node, 0);
is($waiter->ask('SELECT 1'), '', 'and its transaction fails');
like($waiter->errors, qr/ERROR:  canceling statement due to user request/, 'with the reason');
$waiter->ask('ROLLBACK');
is(gate_counts($node, 'taken, queued, cancelled'), '1|0|1', 'it is counted as cancelled');

# statement_timeout counts the queue
$waiter->ask("SET statement_timeout = '50ms'");
$waiter->ask("BEGIN;\nSELECT 1;\nROLLBACK");
like($waiter->errors, qr/ERROR:  canceling statement due to statement timeout/, 'statement_timeout ends the wait');
$waiter->ask('SET statement_timeout = 0');

# terminate, also with temporary tables, which are dropped in a new transaction
my $doomed = session($node);
$doomed->ask('CREATE TEMP TABLE t (n int)');
$doomed->tell('BEGIN');
wait_for_queue($node, 1);
$node->safe_psql('postgres', "SELECT pg_terminate_backend($doomed->{pid})");
wait_for_queue($node, 0);
$node->poll_query_until('postgres',
	"SELECT count(*) FROM pg_stat_activity WHERE pid = $doomed->{pid}", '0');
is(gate_counts($node, 'taken, queued'), '1|0', 'a terminated waiter leaves the queue');

# a client that is gone
my $gone = session($node);
$gone->tell('BEGIN');
wait_for_queue($node, 1);
$gone->vanish;
wait_for_queue($node, 0);
pass('a waiter whose client has gone leaves the queue');

# a holder that is terminated, and one whose client is gone
$waiter->tell('BEGIN');
wait_for_queue($node, 1);
$node->safe_psql('postgres', "SELECT pg_terminate_backend($holder->{pid})");
$waiter->settle;
is(gate_counts($node, 'taken, queued'), '1|0', 'a terminated holder hands its slot on');
my $next = session($node);
$next->tell('BEGIN');
wait_for_queue($node, 1);
$waiter->vanish;
$next->settle;
is(gate_counts($node, 'taken, queued'), '1|0', 'a vanished holder hands its slot on');

# an error gives the slot back before the ROLLBACK
$next->ask('SELECT 1 / 0');
is(gate_counts($node, 'taken'), '0', 'an aborted transaction has no slot');
$next->ask('ROLLBACK');

# timeouts, which a reload changes also for those who queue
$next->ask('BEGIN');
$waiter = session($node);
$waiter->tell("\\set VERBOSITY verbose\nBEGIN");
wait_for_queue($node, 1);
set_all($node, queue_timeout => '100ms', on_timeout => 'error');
$waiter->ask("SELECT 1;\nROLLBACK");
like($waiter->errors, qr/53G01: canceling statement due to queue timeout/, 'timeout: error');
set_all($node, queue_timeout => '0', on_timeout => 'run');
$waiter->tell('BEGIN');
wait_for_queue($node, 1);
set_all($node, queue_timeout => '100ms');
$waiter->settle;
is(gate_counts($node, 'taken, queued, admits_timeout'), '2|0|1', 'timeout: run');
$waiter->ask('COMMIT');
is(gate_counts($node, 'taken'), '1', 'the slot beyond the limit disappears');
set_all($node, on_timeout => 'wait');
$waiter->tell('BEGIN');
$node->poll_query_until('postgres',
	"SELECT max(timeouts) >= 4 FROM pg_governor_pools") or die;
is(gate_counts($node, 'taken, queued'), '1|1', 'timeout: wait');

# a queue that is too long
set_all($node, max_queue => 1);
my $refused = session($node);
$refused->ask("\\set VERBOSITY verbose\nBEGIN;\nSELECT 1;\nROLLBACK");
like($refused->errors, qr/53G02: too many sessions are waiting/, 'early refusal');
is(gate_counts($node, 'queued, refused'), '1|1', 'it is counted as refused');
set_all($node, max_queue => 0);
$next->ask('COMMIT');
$waiter->settle;
$waiter->ask('COMMIT');
nothing_left($node, 'timeouts');

# reserved slots: for superusers (the user of this test) and for named roles
$node->safe_psql('postgres', 'CREATE ROLE admin LOGIN; CREATE ROLE plain LOGIN');
set_all($node, reserved_roles => 'someone, admin', reserved_slots => 2);
$holder = holder($node, user => 'plain');
my $super = holder($node);
my $admin = holder($node, user => 'admin');
is(gate_counts($node, 'taken, reserved, admits_reserved'), '1|2|2', 'reserved slots');
my $late = session($node, user => 'admin');
$late->tell('BEGIN');
wait_for_queue($node, 1);
pass('who finds them all taken queues');
my $plain = session($node, user => 'plain');
$plain->tell('BEGIN');
wait_for_queue($node, 2);
pass('others queue');
$holder->ask('COMMIT');
$late->settle;
$late->ask('COMMIT');
$plain->settle;
$_->ask('COMMIT') for ($super, $admin, $plain);
nothing_left($node, 'reserved slots');

# turns of more than one transaction are for long queues, and for one policy
set_all($node, reserved_slots => 0);
for my $case ([ 'evenness', 40, throughput => 1 ], [ 'fifo', 40, fifo => 8 ], [ 'a short queue', 8, throughput => 8 ])
{
	my ($name, $clients, $policy, $unevenness) = @$case;
	set_all($node, policy => $policy, unevenness => $unevenness);
	$node->safe_psql('postgres', 'SELECT pg_governor_reset()');
	$node->command_ok([ 'pgbench', '-n', '-c', $clients, '-t', 100, '-f', $script, 'postgres' ], "$name: load");
	is(gate_counts($node, 'admits_again'), '0', "$name: no session goes on with its slot");
}
# A session goes on that comes back soon, which takes a while to happen where the CPUs are busy.
set_all($node, policy => 'throughput', unevenness => 8);
my $load = IPC::Run::start([ 'pgbench', '-n', '-c', 40, '-T', 600, '-f', $script, $node->connstr('postgres') ],
	'>', \my $out, '2>', \my $err);
ok($node->poll_query_until('postgres', "SELECT admits_again > 0 FROM pg_governor_pools
	WHERE pool = 'default' AND class = 'transaction'"), 'a long queue: sessions go on with their slot');
$load->signal('TERM');
$load->finish;
nothing_left($node, 'turns');

# the monitor is terminated: another one comes, and meanwhile the gates are as they were
$holder = holder($node);
$waiter = session($node);
$waiter->tell('BEGIN');
wait_for_queue($node, 1);
my $monitor = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_governor monitor'";
my $old = $node->safe_psql('postgres', $monitor);
$node->safe_psql('postgres', "SELECT pg_terminate_backend($old)");
$node->poll_query_until('postgres', "SELECT pid <> $old FROM ($monitor) m") or die;
is(gate_counts($node, 'taken, queued, capacity'), '1|1|1', 'it lets nobody in, and another one comes');
$holder->ask('COMMIT');
$waiter->settle;
$waiter->ask('COMMIT');
nothing_left($node, 'monitor');

# the monitor is stopped: for some seconds slots go from hand to hand, then the gates are open
$holder = holder($node);
$waiter->tell('BEGIN');
wait_for_queue($node, 1);
my $stopped = $node->safe_psql('postgres', $monitor);
kill 'STOP', $stopped;
$holder->ask('COMMIT');
$waiter->settle;
is(gate_counts($node, 'taken, admits_turn > 0'), '1|t', 'a slot is handed on without the monitor');
my $late_one = session($node);
$late_one->ask('BEGIN');
pass('who queues when it stops waits for some seconds');
$late_one->ask('COMMIT');
my $joined = "SELECT waits FROM pg_governor_sessions WHERE pid = $late_one->{pid}";
is($node->safe_psql('postgres', $joined), '1', 'which counts as a wait');
for (1 .. 5) { $late_one->ask('BEGIN'); $late_one->ask('COMMIT') }
is($node->safe_psql('postgres', $joined), '1', 'and nobody after that');
is($node->safe_psql('postgres', 'SELECT gates, why_open FROM pg_governor_health'),
	'open|the monitor has been silent for more than 5 seconds', 'which health says');
kill 'CONT', $stopped;
$node->poll_query_until('postgres', 'SELECT gates FROM pg_governor_health', 'closed') or die;
$waiter->ask('COMMIT');
nothing_left($node, 'stopped monitor');

# a shutdown does not wait for those who queue
$holder = holder($node);
$waiter = session($node);
$waiter->tell('BEGIN');
wait_for_queue($node, 1);
$node->stop('fast');
pass('fast shutdown');

done_testing();
