# Who keeps whom out: idle holders, roles with a share, superusers, and a strict limit over pools.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::RealBin;
use GovernorTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $node = governed_node('holders', <<'EOC');
pg_governor.transaction_limit = 1
pg_governor.pools = 'other()'
pg_governor.discount_time = 0
pg_governor.stall_time = 0
pg_governor.long_time = 0
pg_governor.queue_timeout = 0
pg_governor.idle_holder_timeout = 200ms
pg_governor.mode = observe
EOC
$node->safe_psql('postgres', "CREATE ROLE greedy LOGIN; CREATE ROLE modest LOGIN; CREATE ROLE elsewhere LOGIN;
	CREATE ROLE app; CREATE ROLE boss SUPERUSER; CREATE ROLE dba LOGIN SUPERUSER; CREATE TABLE things (n int);
	GRANT ALL ON things TO PUBLIC; GRANT boss TO modest;
	ALTER ROLE dba SET role = 'app'; ALTER ROLE elsewhere SET pg_governor.pool = 'other'");

sub is_there
{
	my ($session) = @_;
	return $node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE pid = $session->{pid}");
}

# idle holders that keep nobody out
my $holder = holder($node);
my $would = holder($node);
is(gate_counts($node, 'taken, queued'), '1|1', 'observe: one has a slot, one would queue');
usleep(1_000_000);
is(is_there($holder), '1', 'observe: nobody is ended');
$_->ask('COMMIT') for ($holder, $would);
set_all($node, mode => 'enforce');
$holder->ask('BEGIN');
my $other = holder($node, user => 'elsewhere');
my $waiter = session($node, user => 'elsewhere');
$waiter->ask('BEGIN');
is(is_there($other), '0', 'who keeps somebody out is ended');
is(is_there($holder), '1', 'who is idle in another pool is not');
$waiter->ask('COMMIT');
$other->vanish;

# a COPY whose client is slow is no idling
$holder->{in} .= "COPY things FROM STDIN\\; COMMIT;\n1\n";
$holder->{run}->pump_nb;
$node->poll_query_until('postgres', "SELECT wait_event = 'ClientRead' FROM pg_stat_activity
	WHERE pid = $holder->{pid} AND query LIKE 'COPY%'") or die;
$would->tell('BEGIN');
wait_for_queue($node, 1);
usleep(1_000_000);
is(is_there($holder), '1', 'a slow COPY goes on while others queue');
# in one message with the end of its transaction, before which it is not idle
$holder->{in} .= "2\n\\.\n";
$holder->settle;
is($node->safe_psql('postgres', 'SELECT count(*) FROM things'), '2', 'to its end');
$would->settle;
$would->ask('COMMIT');
set_all($node, idle_holder_timeout => 0);

# a superuser is who has logged in as one, whatever SET ROLE says
set_all($node, reserved_slots => 1);
$holder->ask('BEGIN');
$would->ask('BEGIN');
is(gate_counts($node, 'taken, reserved'), '1|1', 'two superusers');
$would->ask('COMMIT');
my $dba = session($node, user => 'dba');
$dba->ask('BEGIN');
is(gate_counts($node, 'taken, reserved'), '1|1', 'a superuser whose role is set to another one');
$dba->ask('COMMIT');
my $modest = session($node, user => 'modest', quiet => 1);
$modest->ask('SET ROLE boss');
$modest->tell('BEGIN');
wait_for_queue($node, 1);
pass('one who has set a superuser as role is none');
$holder->ask('COMMIT');
$modest->settle;
$modest->ask('COMMIT; RESET ROLE');
set_all($node, reserved_slots => 0);
nothing_left($node, 'superusers');

# a block whose BEGIN got no slot does not commit what calls by the fast path have written
my $file = $node->basedir . '/object';
append_to_file($file, 'content');
my $import = "\\lo_import '$file'\n";
$dba->{in} .= $import;
$dba->ask('SELECT 1');
$holder->ask('BEGIN');
$dba->ask("SET pg_governor.user_queue_timeout = '50ms'");
$dba->ask('BEGIN');
$dba->errors;
$dba->{in} .= $import;
$dba->ask('COMMIT');
like($dba->errors, qr/ERROR:  canceling statement due to queue timeout/, 'fast path: COMMIT fails');
$dba->ask('ROLLBACK');
$holder->ask('COMMIT');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_largeobject_metadata'), '1', 'fast path: nothing is committed');
$dba->leave;

# one role's share is of the slots that there are
set_all($node, transaction_limit => 4, role_share => 50, discount_time => '100ms');
my @greedy = map { session($node, user => 'greedy') } 1 .. 5;
$_->ask('BEGIN') for @greedy[ 0 .. 3 ];
is(gate_counts($node, 'taken'), '4', 'share: a role whose two slots are idle gets two others');
$_->tell('DO $$BEGIN LOOP NULL; END LOOP; END$$') for @greedy[ 0, 1 ];
$node->poll_query_until('postgres', "SELECT count(*) FROM pg_stat_activity
	WHERE usename = 'greedy' AND state = 'active' AND query LIKE 'DO%'", '2') or die;
$node->poll_query_until('postgres', 'SELECT count(*) FROM pg_governor_sessions WHERE discounted', '2') or die;
wait_for_look($node);
$greedy[4]->tell('BEGIN');
wait_for_queue($node, 1);
usleep(500_000);
is(gate_counts($node, 'taken, queued'), '4|1', 'share: while two work, no third one does');
$modest->ask('BEGIN');
is(gate_counts($node, 'taken, queued'), '5|1', 'share: another role passes');
$modest->ask('COMMIT');
$_->cancel($node) for @greedy[ 0, 1 ];
$greedy[4]->settle;
$_->ask('COMMIT') for @greedy[ 2 .. 4 ];
nothing_left($node, 'share');

# strict: the owner of a slot waits for a lock of one who queues at another gate
set_all($node, transaction_limit => 1, role_share => 100, discount_time => 0, strict => 'on', total_limit => 1,
	on_timeout => 'wait');
$waiter->ask('SELECT pg_advisory_lock(1)');
$holder->ask('BEGIN');
$waiter->tell('BEGIN');
wait_for_queue($node, 1);
$holder->tell('SELECT pg_advisory_xact_lock(1)');
$waiter->settle;
pass('strict: it is let in');
$waiter->ask('SELECT pg_advisory_unlock(1); COMMIT');
$holder->settle;
$holder->ask('COMMIT');
nothing_left($node, 'strict');

$node->stop;
done_testing();
