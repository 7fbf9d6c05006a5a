//! What the kernel answers to one request, gathered to its end. It refuses to hide that a list changed while it was read.

use std::io;

use futures::{Stream, StreamExt};
use netlink_packet_core::{NLM_F_DUMP_INTR, NetlinkMessage, NetlinkPayload};

/// All answers in order; `None`: the list is not whole. A change is answered with nothing.
///
/// # Errors
/// The kernel's refusal.
pub(crate) async fn gather<I>(
    mut answers: impl Stream<Item = io::Result<NetlinkMessage<I>>> + Unpin,
) -> io::Result<Option<Vec<I>>> {
    let (mut found, mut interrupted) = (Vec::new(), false);
    while let Some(answer) = answers.next().await {
        let answer = answer?;
        interrupted |= answer.header.flags & NLM_F_DUMP_INTR != 0;
        match answer.payload {
            NetlinkPayload::InnerMessage(inner) => found.push(inner),
            NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
            NetlinkPayload::Overrun(_) => interrupted = true,
            _ => {}
        }
    }
    Ok((!interrupted).then_some(found))
}
