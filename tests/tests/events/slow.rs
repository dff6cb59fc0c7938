//! A reader of server-sent events that takes nothing for a while.

use anyhow::{Context as _, Result, ensure};
use domain::cloud_event::CloudEvent;
use harness::readers::{Reader, SseClient, SseStream, in_order, table};
use harness::{Cluster, ClusterOptions, PATIENCE};
use serde_json::Value;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};
use wire::agent::Frame;

/// How long the reader takes no bytes: longer than the 20 s after which it is cut off, and shorter than the 30 s after
/// which the kernel of the other end gives its connection up, and nobody can tell it anything any more.
const PAUSE: Duration = Duration::from_secs(26);
/// Requests of the agent, each with several messages: together more than all buffers on the way hold.
const REQUESTS: usize = 27;
/// Messages in a request.
const MESSAGES: usize = 15;
/// How long each message is.
const LENGTH: usize = 60 << 10;

/// The events of a stream up to its last one, or up to the word that it was cut off, with the place that was said then.
async fn events(stream: &mut SseStream, head: i64, seen: &mut Vec<CloudEvent>) -> Result<Option<String>> {
    while seen.last().is_none_or(|event| event.position < head) {
        let part = timeout(PATIENCE, stream.next()).await.context("nothing comes")??.context("the stream has ended")?;
        let data = part.data.unwrap_or_default();
        match part.kind.as_deref() {
            Some("lagged") => {
                ensure!(stream.next().await?.is_none(), "something follows the reason");
                let data: Value = serde_json::from_str(&data)?;
                return Ok(Some(data["after"].as_str().context("it says where to go on")?.to_owned()));
            }
            Some(_) => seen.push(serde_json::from_str(&data)?),
            // Where the stream begins.
            None => {}
        }
    }
    Ok(None)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_is_told_that_it_is_cut_off_and_resumes_without_a_gap() -> Result<()> {
    let cluster = Cluster::start(ClusterOptions { projections: 2, ..ClusterOptions::default() }).await?;
    let admin = cluster.admin()?;
    let urls: Vec<String> = cluster.projections.iter().map(|service| service.url()).collect();
    let client = SseClient::new(&admin.token)?;
    let mut slow = client.open(&urls[0], None).await?;
    let (quick, begin) = Reader::of_sse(&admin, vec![urls[0].clone()]).await?;
    ensure!(begin.position == 0, "something happened before the first event: {begin}");
    let mut agent = cluster.agent(cluster.world().await?, Some("Talk.")).await?;
    agent.begin().await?;
    let mut seen = Vec::new();
    ensure!(events(&mut slow, 1, &mut seen).await?.is_none(), "it flows");
    let began = Instant::now();
    for _ in 0..REQUESTS {
        let message = || Frame::Message { text: "x".repeat(LENGTH), key: None, delta: false };
        agent.report((0..MESSAGES).map(|_| message()).collect()).await?;
    }
    agent.complete().await?;
    let all = table(&cluster).await?;
    let head = all.last().context("there are events")?.position;
    // Who reads has everything while the other one keeps its buffers full. What is tested: time passes.
    ensure!(quick.upto(head).await?.lagged == 0, "it was quick enough");
    sleep_until(began + PAUSE).await;
    let after = events(&mut slow, head, &mut seen).await?.context("it was not cut off")?;
    let last = seen.last().and_then(CloudEvent::place).context("it had seen something")?;
    ensure!(after == last.to_string(), "{after} is not where it was, {last}");
    // At the other process.
    let mut resumed = client.open(&urls[1], Some(&after)).await?;
    ensure!(events(&mut resumed, head, &mut seen).await?.is_none(), "it was cut off again");
    in_order(&seen)?;
    ensure!(seen == all, "what came is not what is kept");
    cluster.assert_healthy().await
}
