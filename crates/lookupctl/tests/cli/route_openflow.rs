//! `route --app openflow` with flows, groups and meters of a file.

use crate::common::Folder;
use crate::route::{frame, pcap};

#[test]
fn dumps_of_flows_groups_and_meters_are_taken_together() {
    let folder = Folder::new();
    let frames = vec![frame([10, 1, 2, 9], 64); 20];
    folder.write("in.pcap", pcap(&frames));
    let flows = "OFPST_FLOW reply (OF1.3) (xid=0x2):\n \
                 cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=1,in_port=1 actions=meter:1,group:7\n";
    let others = "OFPST_GROUP_DESC reply (OF1.3) (xid=0x2):\n \
                  group_id=7,type=all,bucket=actions=group:8,bucket=actions=output:3\n \
                  group_id=8,type=ff,bucket=watch_port:2,actions=output:2\n\
                  OFPST_METER_CONFIG reply (OF1.3) (xid=0x2):\n\
                  meter=1 kbps burst stats bands=\n\
                  type=drop rate=1000000 burst_size=100000\n";
    for text in [[flows, others].concat(), [others, flows].concat()] {
        folder.write("flows", text);
        let said = folder
            .run("route --app openflow --flows flows --in in.pcap --out a.pcap --out b.pcap")
            .ok()
            .stderr;
        assert!(said.contains("flows from flows: 1, groups: 2, meters: 1"), "{said}");
        for out in ["a.pcap", "b.pcap"] {
            let bytes = std::fs::read(folder.path(out)).unwrap();
            // The time of each frame is when it was written.
            assert_eq!(bytes.len(), pcap(&frames).len(), "{out}");
            assert!(bytes.ends_with(&frames[0]), "{out}");
        }
    }
    let run = |text: &str| {
        folder.write("flows", text);
        folder.run("route --app openflow --flows flows --in in.pcap")
    };
    run(flows).refused(&["flows: line 2", "refuses"]);
    run("group_id=1,type=select,selection_method=hash\n").refused(&["flows: line 1", "selection_method"]);
    run("\nmeter=1 kbps bands=\ntype=drop speed=9\n").refused(&["flows: line 3", "speed"]);
}
