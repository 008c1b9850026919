//! Sends frames of 60 bytes by a Linux interface, as many as go: a load to measure forwarders with.
//! `blast IF FROM TO SOURCE DESTINATION [SECONDS]`, with hardware addresses FROM and TO and IPv4 addresses.
//! Says how many frames were sent.

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, from, to, source, destination, rest @ ..] = &arguments[..] else {
        println!("blast IF FROM TO SOURCE DESTINATION [SECONDS]");
        return Ok(());
    };
    let seconds = rest.first().map_or(Ok(1.0), |text| text.parse())?;
    let frame = linux::frame([mac(from)?, mac(to)?], [source.parse()?, destination.parse()?]);
    linux::blast(name, &frame, std::time::Duration::from_secs_f64(seconds))
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("interfaces can be used on Linux only");
}

/// A hardware address.
#[cfg(target_os = "linux")]
fn mac(text: &str) -> Result<[u8; 6], Box<dyn std::error::Error>> {
    let bytes: Result<Vec<u8>, _> = text.split(':').map(|byte| u8::from_str_radix(byte, 16)).collect();
    bytes?.try_into().map_err(|_| format!("{text:?} is no hardware address").into())
}

#[cfg(target_os = "linux")]
mod linux {
    use std::error::Error;
    use std::net::Ipv4Addr;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use wirespeed_router::Memory;
    use wirespeed_router::checksum::checksum;
    use wirespeed_router::io::{Attach, Interface, LocalAddresses, Port, Program, Tags, Umem, XdpOptions};

    /// A frame with a datagram.
    pub(super) fn frame([from, to]: [[u8; 6]; 2], [source, destination]: [Ipv4Addr; 2]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17, 0, 0];
        packet.extend(source.octets());
        packet.extend(destination.octets());
        let checksum = checksum(&packet);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        // Ports, length and no checksum, then the data.
        packet.extend([0x10, 0, 0x10, 1, 0, 26, 0, 0]);
        packet.extend([7; 18]);
        [&to[..], &from[..], &[8, 0], &packet].concat()
    }

    /// Sends the frame again and again.
    pub(super) fn blast(name: &str, frame: &[u8], time: Duration) -> Result<(), Box<dyn Error>> {
        let interface = Interface::open(name)?;
        let mut memory = Memory::new(8192)?;
        let program = Program::attach(&interface, &LocalAddresses::new(), Tags::Kernel, Attach::Skb)?;
        let mut port = Umem::new(&memory).open(&Arc::new(program), 0, &XdpOptions::default(), &mut memory)?;
        let (start, mut frames) = (Instant::now(), Vec::new());
        while start.elapsed() < time {
            while frames.len() < 64
                && let Some(next) = memory.copy_of(frame)
            {
                frames.push(next);
            }
            port.send(&mut memory, &mut frames)?;
        }
        println!("{} frames in {:.3} s", port.counts().sent, start.elapsed().as_secs_f64());
        frames.drain(..).for_each(|frame| memory.give(frame));
        port.close(&mut memory);
        Ok(())
    }
}
