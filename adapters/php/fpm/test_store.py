"""Which files are named, and how the directory of snapshots is kept."""

import mmap
import os
import pathlib
import random
import shutil
import stat
import subprocess
import tempfile
import time
import unittest

from case import SiteCase, content
from pool import AS_ROOT, SETTLED_S, Site

KIB_60 = content(60 * 1024)
READ = "<?php echo file_get_contents('{}'); "


class Store(SiteCase):
    pools = {
        "main": {},
        "off": {"ini": {"baton.enable": 0}},
        "rootless": {"roots": ""},
        "storeless": {"snapshots": ""},
        "bare": {"snapshots": "/nonexistent"},
        "settled": {"ini": {"baton.settle": 1}},
    }
    files = {
        "60k": KIB_60,
        "shared": content(50_000),
        "removed": KIB_60,
        "private": KIB_60,
        "outside-link": b"",
        "small": content(4000),
        "of-root": KIB_60,
        "dir/inside": KIB_60,
    }

    @classmethod
    def setUpClass(cls):
        cls.files = dict(cls.files)
        inside = cls.files.pop("dir/inside")
        super().setUpClass()
        (cls.site.files / "dir").mkdir()
        cls.site.write("dir/inside", inside)
        (cls.site.files / "private").chmod(0o640)
        link = cls.site.files / "outside-link"
        link.unlink()
        link.symlink_to("/etc/services")
        if AS_ROOT:
            os.chown(cls.site.files / "of-root", 0, 0)
        time.sleep(SETTLED_S)

    def snapshots(self):
        return sorted(path.name for path in self.site.snapshots.glob("u*/*"))

    def reason(self, name, pool="main"):
        """Why a file was not named: the counter that moved."""
        before = self.site.status(pool)
        answer = self.site.get(READ.format(name), pool=pool)
        after = self.site.status(pool)
        self.assertEqual([], answer.names)
        self.assertEqual(answer.body, self.site.get(READ.format(name), zero_copy=False, pool=pool).body)
        return [word for word in before if before[word] != after[word]]

    def test_snapshots_are_immutable_and_reachable(self):
        answer = self.site.get(READ.format("60k"))
        (offset, length), = answer.names
        snapshot = pathlib.Path(answer.body[offset : offset + length].decode())
        self.assertEqual(0o444, stat.S_IMODE(snapshot.stat().st_mode))
        self.assertEqual(0o711, stat.S_IMODE(snapshot.parent.stat().st_mode))
        self.assertEqual(self.site.snapshots.resolve(), snapshot.parent.parent)
        self.assertEqual(1, snapshot.stat().st_nlink)

    def test_one_snapshot_for_all_who_read_a_version(self):
        for path in ["shared", "./shared", "dir/../shared", self.site.files / "shared"]:
            self.same(READ.format(path), names=1)
        self.same("<?php include 'shared';", names=1)
        self.same(READ.format("shared"), names=1, pool="settled")
        self.assertEqual(1, sum(f"-{50_000:x}-" in name for name in self.snapshots()))

    def test_reasons_to_leave_files_alone(self):
        self.assertEqual(["outside_roots"], self.reason("/etc/services"))
        self.assertEqual(["outside_roots"], self.reason("outside-link"))
        self.assertEqual(["not_world_readable"], self.reason("private"))
        self.assertEqual([], self.reason("small"))

    def test_only_the_owner_gets_a_lease(self):
        if not AS_ROOT:
            self.skipTest("needs root, to make a file that is another's")
        self.assertEqual(["not_our_file"], self.reason("of-root"))
        self.same(READ.format("of-root"), names=1, pool="settled")

    def test_a_mapping_that_is_stored_to_again_and_again(self):
        """Stores to a page that is dirty already do not move the times of a file; so it is made clean first."""
        if not AS_ROOT:
            self.skipTest("needs root, to make a file that is another's")
        path = self.site.files / "mapped-by-root"
        path.write_bytes(KIB_60)
        with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
            mapping[0] = ord("x")
            time.sleep(SETTLED_S)
            for byte in b"yz":
                answer = self.site.get(READ.format("mapped-by-root"), pool="settled")
                self.assertEqual(mapping[:], answer.expanded())
                mapping[0] = byte
            self.assertEqual(mapping[:], self.site.get(READ.format("mapped-by-root"), pool="settled").expanded())

    def test_who_does_not_ask_gets_no_names(self):
        for roots in [None, "", "/nowhere", "/nowhere:/", str(self.site.files), str(self.site.snapshots) + "x"]:
            with self.subTest(roots=roots):
                parameters = {} if roots is None else {"BATON_ZEROCOPY": roots}
                answer = self.site.get(READ.format("60k"), zero_copy=False, **parameters)
                self.assertEqual(int(roots == "/nowhere:/"), len(answer.names))
        answer = self.site.get(READ.format("60k"), zero_copy=False, HTTP_BATON_ZEROCOPY="/")
        self.assertEqual([], answer.names)

    def test_switched_off(self):
        for pool in ["off", "rootless", "storeless", "bare"]:
            with self.subTest(pool=pool):
                self.same(READ.format("60k"), names=0, pool=pool)
        self.same("<?php ini_set('baton.enable', 0); echo file_get_contents('60k');", names=0)
        self.same("<?php ini_set('open_basedir', __DIR__ . '/dir'); echo file_get_contents('60k');", names=0)
        self.logged("/nonexistent is of no use as baton.snapshot_dir")

    def test_a_snapshot_that_somebody_removed(self):
        script = READ.format("removed")
        before = self.snapshots()
        self.same(script, names=1)
        (made,) = set(self.snapshots()) - set(before)
        next(self.site.snapshots.glob(f"u*/{made}")).unlink()
        self.same(script, names=0)
        self.same(script, names=1)


class LittleStore(SiteCase):
    """A store of five files, in which what is not named for two seconds is out of use."""

    pools = {"main": {"ini": {"baton.snapshot_max": 200 * 1024, "baton.grace": 2}}}
    files = {f"{number}": content(40 * 1024, f"number {number}") for number in range(8)}

    def snapshots(self):
        return {path.name: path.stat().st_size for path in self.site.snapshots.glob("u*/*")}

    def named(self, number):
        return len(self.same(READ.format(number), names=None).names)


class Bounds(LittleStore):
    def test_the_bound_holds_and_what_is_out_of_use_goes(self):
        self.assertEqual([1, 1, 1, 1, 1, 0, 0, 0], [self.named(number) for number in range(8)])
        self.assertEqual(3, self.site.status()["no_room"])
        before = self.snapshots()
        self.assertEqual(200 * 1024, sum(before.values()))
        time.sleep(3.5)
        self.assertEqual([1, 1, 1, 1, 1], [self.named(number) for number in [7, 6, 5, 4, 7]])
        self.assertEqual(4, len(self.snapshots()), "what was not named for longer than the grace is gone")
        # Those whose snapshots went away notice, and make new ones when there is room.
        self.assertEqual([1, 0], [self.named(number) for number in [0, 1]])

    def test_a_file_that_fills_more_than_its_share(self):
        self.site.write("large", content(60 * 1024))
        time.sleep(SETTLED_S)
        self.assertEqual(0, self.named("large"))
        self.assertEqual(1, self.site.status()["too_large"])


class InUse(LittleStore):
    def test_a_snapshot_in_use_is_kept(self):
        deadline = time.monotonic() + 7
        while not self.named(0):
            time.sleep(0.5)
        while time.monotonic() < deadline:
            # The others make the worker look for room, and for what is out of use.
            self.named(random.randrange(1, 8))
            self.assertEqual(1, self.named(0))
            time.sleep(0.1)


class Places(unittest.TestCase):
    """Directories of snapshots that others could meddle with are refused."""

    def named(self, prepare):
        site = Site({"main": {}})
        self.addCleanup(site.stop)
        site.write("60k", KIB_60)
        prepare(site)
        time.sleep(SETTLED_S)
        return len(site.get(READ.format("60k")).names)

    def test_others_may_rename(self):
        self.assertEqual(0, self.named(lambda site: site.snapshots.chmod(0o777)))
        self.assertEqual(1, self.named(lambda site: site.snapshots.chmod(0o1777)))

    def test_own_directory_is_writable_for_others(self):
        def prepare(site):
            own = site.snapshots / f"u{site.files.stat().st_uid}"
            own.mkdir()
            site.give(own).chmod(0o777)

        self.assertEqual(0, self.named(prepare))

    def test_own_directory_is_a_link(self):
        def prepare(site):
            elsewhere = site.root / "elsewhere"
            elsewhere.mkdir()
            site.give(elsewhere)
            (site.snapshots / f"u{site.files.stat().st_uid}").symlink_to(elsewhere)

        self.assertEqual(0, self.named(prepare))

    def test_own_directory_was_made_by_another(self):
        if not AS_ROOT:
            self.skipTest("needs root, to make a directory that is another's")

        def forge(site):
            """The creator of the directory could replace snapshots."""
            own = site.snapshots / f"u{site.files.stat().st_uid}"
            own.mkdir()
            file = (site.files / "60k").stat()
            seconds, nanoseconds = divmod(file.st_ctime_ns, 10**9)
            name = f"{file.st_dev:x}-{file.st_ino:x}-{file.st_size:x}-{seconds:x}-{nanoseconds:x}"
            (own / name).write_bytes(b"forged" * (len(KIB_60) // 6))

        self.assertEqual(0, self.named(forge))


class FileSystems(unittest.TestCase):
    """Other file systems than that of the temporary directory; needs root, who may mount them."""

    def setUp(self):
        if not AS_ROOT:
            self.skipTest("needs root, to mount a file system")

    def mounted(self, make, options):
        if shutil.which(make[0]) is None:
            self.skipTest(f"needs {make[0]}")
        directory = pathlib.Path(tempfile.mkdtemp(prefix="baton-php-mount-"))
        self.addCleanup(shutil.rmtree, directory)
        image, mount = directory / "image", directory / "mount"
        mount.mkdir()
        with open(image, "wb") as file:
            file.truncate(400 << 20)
        directory.chmod(0o755)
        subprocess.run([*make, image], check=True, capture_output=True)
        mounting = subprocess.run(["mount", "-o", options, image, mount], capture_output=True, text=True)
        if mounting.returncode:
            self.skipTest(f"this kernel does not mount it: {mounting.stderr}")
        self.addCleanup(subprocess.run, ["umount", mount], check=True)
        return mount

    def check(self, mount, of_another, of_another_if_settled=1):
        site = Site({"main": {}, "settled": {"ini": {"baton.settle": 1}}}, parent=mount)
        self.addCleanup(site.stop)
        path = site.write("60k", KIB_60)
        other = site.write("of-root", KIB_60)
        os.chown(other, 0, 0)
        time.sleep(SETTLED_S)
        with open(path, "r+b") as writer, mmap.mmap(writer.fileno(), 0):
            writer.close()
            self.assertEqual(0, len(site.get(READ.format("60k")).names), "it is mapped for writing")
        time.sleep(1.1)
        answer = site.get(READ.format("60k"))
        self.assertEqual(1, len(answer.names), site.status())
        path.write_bytes(b"x" * len(KIB_60))
        self.assertEqual(KIB_60, answer.expanded())
        self.assertEqual(b"x" * len(KIB_60), site.get(READ.format("60k")).expanded())

        answer = site.get(READ.format("of-root"))
        self.assertEqual(of_another, len(answer.names), site.status())
        settled = site.get(READ.format("of-root"), pool="settled")
        self.assertEqual(of_another_if_settled, len(settled.names), site.status("settled"))
        other.write_bytes(b"y" * len(KIB_60))
        self.assertEqual(KIB_60, answer.expanded())
        self.assertEqual(KIB_60, settled.expanded())

    def test_xfs_clones_what_is_anothers(self):
        self.check(self.mounted(["mkfs.xfs", "-q"], "loop"), of_another=1)

    def test_btrfs_clones_what_is_anothers(self):
        self.check(self.mounted(["mkfs.btrfs", "-q"], "loop"), of_another=1)

    def test_ext4_with_times_in_whole_seconds(self):
        self.check(self.mounted(["mkfs.ext4", "-q", "-I", "128"], "loop"), of_another=0)

    def test_tmpfs(self):
        # Stores to a mapping in memory could go unseen.
        self.check("/dev/shm", of_another=0, of_another_if_settled=0)

    def test_one_that_is_not_known(self):
        mount = pathlib.Path(tempfile.mkdtemp(prefix="baton-php-ramfs-"))
        self.addCleanup(mount.rmdir)
        subprocess.run(["mount", "-t", "ramfs", "ramfs", mount], check=True)
        self.addCleanup(subprocess.run, ["umount", mount], check=True)
        mount.chmod(0o755)
        site = Site({"main": {}}, parent=mount)
        self.addCleanup(site.stop)
        site.write("60k", KIB_60)
        time.sleep(SETTLED_S)
        self.assertEqual([], site.get(READ.format("60k")).names)
        self.assertEqual(1, site.status()["file_system_unknown"])

    def test_overlay(self):
        directory = pathlib.Path(tempfile.mkdtemp(prefix="baton-php-overlay-", dir="/dev/shm"))
        self.addCleanup(shutil.rmtree, directory)
        directory.chmod(0o755)
        for name in ["lower", "upper", "work", "mount"]:
            (directory / name).mkdir()
        options = ",".join(f"{name}dir={directory / name}" for name in ["lower", "upper", "work"])
        mounting = subprocess.run(
            ["mount", "-t", "overlay", "overlay", "-o", options, directory / "mount"], capture_output=True, text=True
        )
        if mounting.returncode:
            self.skipTest(f"this kernel does not mount it: {mounting.stderr}")
        self.addCleanup(subprocess.run, ["umount", directory / "mount"], check=True)
        self.check(directory / "mount", of_another=0, of_another_if_settled=0)


if __name__ == "__main__":
    unittest.main()
