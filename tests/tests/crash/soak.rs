//! Everything at once: people and agents of both kinds at work while, second after second, some service is killed or
//! stands still.
//!
//! `ASKBACK_SOAK_SECONDS` makes it longer, `ASKBACK_SOAK_SEED` repeats the choices of an earlier run.

use anyhow::{Result, ensure};
use harness::callers::Callers;
use harness::dice::Dice;
use harness::scenario::Scenario;
use harness::{Cluster, ClusterOptions, Service};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// How long it goes on unless somebody says otherwise. Settling comes on top.
const SECONDS: u64 = 40;
/// Between two faults.
const PACE: Duration = Duration::from_secs(1);

/// What is wrong with a service, and until when.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Dead(Instant),
    Asleep(Instant),
}

/// Ends the faults whose time has come; all of them without a time.
async fn heal(services: &mut [&mut Service], faults: &mut [Option<Fault>], now: Option<Instant>) -> Result<()> {
    for (service, fault) in services.iter_mut().zip(faults) {
        let due = |until: Instant| now.is_none_or(|now| until <= now);
        match *fault {
            Some(Fault::Dead(until)) if due(until) => service.launch(None)?,
            Some(Fault::Asleep(until)) if due(until) => service.resume()?,
            _ => continue,
        }
        *fault = None;
        if now.is_none() {
            service.ready().await?;
        }
    }
    Ok(())
}

/// Lets things happen to services until `deadline`. Returns how many did.
async fn make_trouble(services: &mut [&mut Service], dice: &mut Dice, deadline: Instant) -> Result<(u32, u32)> {
    let mut faults: Vec<Option<Fault>> = vec![None; services.len()];
    let (mut kills, mut sleeps) = (0, 0);
    while Instant::now() < deadline {
        let next = Instant::now() + PACE;
        heal(services, &mut faults, Some(Instant::now())).await?;
        let victim = dice.place(services.len());
        let until = Instant::now() + dice.between_ms(0, 4_000);
        // Some time within the second, so that faults meet every step of what goes on.
        sleep(dice.between_ms(0, 500)).await;
        if faults[victim].is_none() {
            if dice.below(3) == 0 {
                services[victim].pause()?;
                faults[victim] = Some(Fault::Asleep(until));
                sleeps += 1;
            } else {
                services[victim].kill9()?;
                faults[victim] = Some(Fault::Dead(until));
                kills += 1;
            }
        }
        sleep_until(next).await;
    }
    heal(services, &mut faults, None).await?;
    Ok((kills, sleeps))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_happens_to_services_every_question_has_one_outcome_and_every_answer_arrives_once() -> Result<()> {
    let (mut dice, seed) = Dice::of_variable("ASKBACK_SOAK_SEED");
    let seconds = std::env::var("ASKBACK_SOAK_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SECONDS);
    println!("ASKBACK_SOAK_SEED={seed} ASKBACK_SOAK_SECONDS={seconds}");
    let options = ClusterOptions { respond_apis: 2, orchestrators: 3, ..ClusterOptions::default() };
    let mut cluster = Cluster::start(options).await?;
    let scenario = Scenario::begin(&cluster, 5, usize::MAX).await?;
    let callers = Callers::begin(&cluster, 4).await?;
    let deadline = Instant::now() + Duration::from_secs(seconds);
    let mut services: Vec<&mut Service> = cluster.orchestrators.iter_mut().chain(&mut cluster.respond_apis).collect();
    let (kills, sleeps) = make_trouble(&mut services, &mut dice, deadline).await?;
    scenario.enough();
    callers.enough();
    scenario.settle().await?;
    callers.settle().await?;
    cluster.assert_healthy().await?;
    cluster.every_answer_went_once().await?;
    let answered = (scenario.answered(), callers.answered());
    println!("{kills} kills, {sleeps} pauses, {answered:?} answers");
    ensure!(kills > 5 && sleeps > 0 && answered.0 > 10 && answered.1 > 10, "too little happened to prove anything");
    Ok(())
}
