//! A traceroute through the router, whose dropped frames go to a capture, and the rights that it keeps.

use std::fs;

use crate::world::{World, drivers};

/// Sends a datagram with one hop, then with two and so on, until the destination answers. Prints hops, the
/// address that answered, and type and code of its ICMP error.
const TRACEROUTE: &str = r"
import select, socket, struct, sys
to = sys.argv[1]
v6 = ':' in to
for hops in range(1, 6):
    s = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_DGRAM)
    # IPV6_UNICAST_HOPS and IPV6_RECVERR, IP_TTL and IP_RECVERR
    level, option, errors = (41, 16, 25) if v6 else (0, 2, 11)
    s.setsockopt(level, option, hops)
    s.setsockopt(level, errors, 1)
    for attempt in range(5):
        s.sendto(b'traceroute', (to, 33434 + hops))
        poll = select.poll()
        poll.register(s, 0)
        if poll.poll(1000):
            break
    _, about, _, _ = s.recvmsg(512, 512, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
    error = about[0][2]
    kind, code = error[5], error[6]
    who = socket.inet_ntop(socket.AF_INET6, error[24:40]) if v6 else socket.inet_ntoa(error[20:24])
    print(hops, who, kind, code, flush=True)
    if who == to:
        break
";

#[test]
fn a_traceroute_sees_the_router_and_what_is_dropped_is_kept() {
    for driver in drivers() {
        let Some(world) = World::new(&["a", "b"]) else { return };
        if world.run("a", &["python3", "-c", ""]).is_err() {
            println!("skipped: no python3");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let drops = folder.path().join("drops.pcapng");
        let Some(router) = world.router(&format!("{driver} --drops {}", drops.display())) else { return };
        let trace = |to| world.run("a", &["python3", "-c", TRACEROUTE, to]).unwrap();
        // Time exceeded by the router's own address, and port unreachable by the host behind it.
        // The kernel answers as long as it has not found the hosts.
        let traced = || {
            assert_eq!(trace("10.0.2.2"), "1 10.0.1.1 11 0\n2 10.0.2.2 3 3\n", "{driver}");
            assert_eq!(trace("fd02::2"), "1 fd01::1 3 0\n2 fd02::2 1 4\n", "{driver}");
            world.metric("frames_dropped_total{reason=\"expired\"}") >= 2
        };
        assert!(World::until(traced), "{driver}: forwarded here: {}", router.said());
        let few = 1 << 12 | 1 << 13 | 1 << 14 | 1 << 21 | 1 << 24 | 1 << 39;
        // Threads that began while files were read may read files still.
        let (rights, readers) = (router.rights(), 1 << 2);
        assert!(rights.iter().all(|rights| rights & !(few | readers) == 0), "{rights:x?}");
        assert!(rights.iter().any(|rights| rights & !few == 0), "{rights:x?}");
        let report = router.stop();
        assert!(report["made"].as_u64() >= Some(2), "{report}");
        let kept = fs::read(&drops).unwrap();
        let has = |bytes: &[u8]| kept.windows(bytes.len()).any(|window| window == bytes);
        assert!(has(b"expired") && has(b"traceroute"), "{driver}: the frames, by reason");
    }
}
