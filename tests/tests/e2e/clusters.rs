//! The clusters that scenarios run on.

/// Makes two tests of each scenario: on one process of each service, and on two of each that take requests in turn.
macro_rules! on_both_clusters {
    ($($scenario:ident),+ $(,)?) => {
        $(
            mod $scenario {
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn on_one_of_each_service() -> anyhow::Result<()> {
                    super::$scenario(harness::ClusterOptions::default()).await
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn on_two_of_each_service() -> anyhow::Result<()> {
                    super::$scenario(harness::ClusterOptions::two_of_each()).await
                }
            }
        )+
    };
}
pub(crate) use on_both_clusters;
