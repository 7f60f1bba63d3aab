//! Power cuts where something is missing for them: what is missing is said, everything else runs.

use crate::Desk;

/// A server on a plain disk, and one on each kind of disk that can be cut.
const STUDY: &str = r#"
[topologies.plain.nodes]
primary = {}
[topologies.filesystem.nodes.primary]
disk = { cut = "filesystem", size = "8GB" }
[topologies.block.nodes.primary]
disk = { cut = "block", size = "8GB" }
[variants.plain]
topology = "plain"
[variants.filesystem]
topology = "filesystem"
[variants.block]
topology = "block"
[scenarios.cut]
run = ["insert"]
variants = ["filesystem", "block"]
on_loss = "reconnect"
timeline = [{ at = "100ms", power_cut = "primary" }]
"#;

#[test]
fn what_a_power_cut_lacks_is_said_and_the_rest_fits() {
    let desk = Desk::new();
    desk.write_study("cuts", STUDY);
    let check = |prepare: &str, expected: &str, hint: &str| {
        let said = desk.in_own_mounts(prepare, &["check", "cuts", "--profile", "smoke"]).ended(0);
        assert!(said.out.contains(expected), "{}", said.out);
        assert!(said.out.contains(hint), "{}", said.out);
        let line = |name: &str| said.out.lines().find(|line| line.contains(name)).unwrap();
        assert!(line("plain/load").ends_with("  fits"), "{}", said.out);
        assert!(line("block/cut").ends_with("  left out"), "{}", said.out);
    };
    if !rustix::process::geteuid().is_root() {
        let said = desk.pgrig(&["check", "cuts", "--profile", "smoke"]).ended(0);
        assert!(said.out.contains("needs   to be root"), "{}", said.out);
        return testing::skip::no_root();
    }
    if crate::own_mounts().is_none() {
        return;
    }
    let nobody = "chmod 755 . cuts && chmod 644 cuts/* && cp \"$0\" pgrig && exec setpriv \
                  --reuid=nobody --regid=nogroup --clear-groups ./pgrig \"$@\"";
    check(nobody, "needs   to be root", "run it as root");
    // Only what is named here is in /dev then.
    let bare = "mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 \
                && mknod -m 666 /dev/urandom c 1 9";
    let control = "mknod /dev/loop-control c 10 237";
    check(bare, "needs /dev/loop-control: No such file", "load the kernel's loop module");
    check(&format!("{bare} && {control}"), "no loop device is free: /dev/loop", "losetup -l");
    let loops = "for n in $(seq 0 63); do mknod /dev/loop$n b 7 $n; done";
    let all_but_fuse = format!("{bare} && {control} && {loops}");
    check(&all_but_fuse, "needs /dev/fuse: No such file", "cut = \"filesystem\" needs none");
    let unknown = "echo 'nodev proc' > known && mount --bind known /proc/filesystems && \
                   if [ -d /lib/modules ]; then mount -t tmpfs none /lib/modules; fi";
    check(unknown, "this kernel has no file system ext4", "load its kernel module");
    let small = "mkdir -p small && mount -t tmpfs -o size=6g none small && export TMPDIR=small";
    check(
        small,
        "the image of a disk of 8192 MiB does not fit: small has 6144 MiB free",
        "smaller",
    );
}
