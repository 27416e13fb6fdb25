//! The physical optimizer rule `read_dictionaries`: class keys are made of the dictionaries of Parquet files.
//!
//! A writer of Parquet keeps each text of a column once, and a number per row. The engine's reader
//! makes a text per row again, even if only a [class key](crate::engine::class_key) looks at it.
//! With this rule, the key is computed in the scan, from the dictionaries as they are in the file.
//!
//! # Contract
//! The rule changes a GROUP BY by a class key that only counts rows and stands right above a scan of
//! Parquet files, or above one whose rows are dealt out to more threads. A column of text is read as
//! a dictionary where nothing but class keys looks at it and all its pages in a file are encoded by
//! one; another file may have it as plain text. Keys do not depend on the encoding, so the result is
//! the same. Other plans and formats, and encrypted files, stay as they are. Readers of others are
//! asked as before: only what the metadata say of types is changed.
//!
//! The reader takes the types from the schema in a file's metadata, where [`readers`] writes them;
//! [`adapters`] removes the engine's casts to the types of the table.

mod adapters;
mod readers;

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::datasource::physical_plan::{
    FileScanConfig, FileScanConfigBuilder, FileSource, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{Partitioning, PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode, PhysicalGroupBy};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::repartition::RepartitionExec;

use super::class_key::is_key_function;
use adapters::PackedAdapters;
use readers::DictionaryReaders;

/// The rule's name, under which EXPLAIN VERBOSE shows it.
pub(crate) const NAME: &str = "read_dictionaries";

/// The rule; see the [module](self). It must stand behind the engine's rules.
#[derive(Debug)]
pub(crate) struct ReadDictionaries {
    /// Whether a function below a key maps dictionaries to dictionaries.
    pub(crate) takes_dictionaries: TakesDictionaries,
}

/// Tells functions that map dictionaries to dictionaries.
pub(crate) type TakesDictionaries = fn(&ScalarUDF) -> bool;

/// Returns whether an expression is a key of a class or of a value.
fn is_key(expr: &Arc<dyn PhysicalExpr>) -> bool {
    expr.downcast_ref::<ScalarFunctionExpr>().is_some_and(|call| is_key_function(call.fun()))
}

/// Returns the indices of the columns that an expression looks at.
fn columns_of(expr: &Arc<dyn PhysicalExpr>) -> Result<BTreeSet<usize>> {
    let mut columns = BTreeSet::new();
    expr.apply(|part| {
        columns.extend(part.downcast_ref::<Column>().map(Column::index));
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(columns)
}

/// Returns the plan below a repartition that deals rows out in turns.
fn below_round_robin(plan: &Arc<dyn ExecutionPlan>) -> Option<(&Arc<dyn ExecutionPlan>, usize)> {
    let dealt = plan.downcast_ref::<RepartitionExec>()?;
    match dealt.partitioning() {
        Partitioning::RoundRobinBatch(partitions) if !dealt.preserve_order() => {
            Some((dealt.input(), *partitions))
        }
        _ => None,
    }
}

/// Returns the Parquet files that a plan scans.
fn parquet_of(plan: &Arc<dyn ExecutionPlan>) -> Option<(&FileScanConfig, &ParquetSource)> {
    let config = plan.downcast_ref::<DataSourceExec>()?.data_source().downcast_ref::<FileScanConfig>()?;
    Some((config, config.file_source().downcast_ref::<ParquetSource>()?))
}

/// Returns an aggregate whose keys are computed in the scan below it; `None` if it is not of this form.
fn with_keys_in_scan(
    aggregate: &AggregateExec,
    takes_dictionaries: TakesDictionaries,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let keys = aggregate.group_expr();
    let looks_at_no_column =
        |expr: &Arc<dyn PhysicalExpr>| columns_of(expr).is_ok_and(|columns| columns.is_empty());
    let only_counts = aggregate.filter_expr().iter().all(Option::is_none)
        && aggregate
            .aggr_expr()
            .iter()
            .all(|call| call.order_bys().is_empty() && call.expressions().iter().all(looks_at_no_column));
    let is_ours = keys.is_single() && keys.expr().iter().any(|(key, _)| is_key(key));
    if aggregate.mode().input_mode() != AggregateInputMode::Raw || !is_ours || !only_counts {
        return Ok(None);
    }
    let dealt = below_round_robin(aggregate.input());
    let input = dealt.map_or(aggregate.input(), |(input, _)| input);
    let Some((config, source)) = parquet_of(input) else { return Ok(None) };
    let crypto = &source.table_parquet_options().crypto;
    let is_encrypted = crypto.file_decryption.is_some() || crypto.factory_id.is_some();
    let columns = columns_of_keys(aggregate, source)?;
    let readers = source.parquet_file_reader_factory().filter(|_| !is_encrypted && !columns.is_empty());
    let Some(readers) = readers else { return Ok(None) };
    let readers = DictionaryReaders { readers: Arc::clone(readers), columns };
    let source = source.clone().with_parquet_file_reader_factory(Arc::new(readers));
    let adapters = PackedAdapters { adapters: config.expr_adapter_factory.clone(), takes_dictionaries };
    let config = FileScanConfigBuilder::from(config.clone())
        .with_source(Arc::new(source))
        .with_expr_adapter(Some(Arc::new(adapters)))
        .build();
    let scan: Arc<dyn ExecutionPlan> = DataSourceExec::from_data_source(config);
    let named = keys.expr().iter().map(|(key, name)| ProjectionExpr::new(Arc::clone(key), name.clone()));
    let projection = ProjectionExec::try_new(named.collect::<Vec<_>>(), Arc::clone(&scan))?;
    let Some(scan) = scan.try_swapping_with_projection(&projection)? else { return Ok(None) };
    let input = match dealt {
        Some((_, partitions)) => {
            Arc::new(RepartitionExec::try_new(scan, Partitioning::RoundRobinBatch(partitions))?)
        }
        None => scan,
    };
    let kept = keys
        .expr()
        .iter()
        .enumerate()
        .map(|(at, (_, name))| (Arc::new(Column::new(name, at)) as Arc<dyn PhysicalExpr>, name.clone()));
    let changed = AggregateExec::try_new(
        *aggregate.mode(),
        PhysicalGroupBy::new_single(kept.collect()),
        aggregate.aggr_expr().to_vec(),
        aggregate.filter_expr().to_vec(),
        Arc::clone(&input),
        input.schema(),
    )?;
    Ok(Some(Arc::new(changed.with_limit_options(aggregate.limit_options()))))
}

/// Returns the names of the columns of text that only class keys look at.
fn columns_of_keys(aggregate: &AggregateExec, source: &ParquetSource) -> Result<BTreeSet<String>> {
    let (mut of_keys, mut of_others) = (BTreeSet::new(), BTreeSet::new());
    for (key, _) in aggregate.group_expr().expr() {
        if is_key(key) { &mut of_keys } else { &mut of_others }.extend(columns_of(key)?);
    }
    let mut others: BTreeSet<String> = BTreeSet::new();
    if let Some(filter) = source.filter() {
        filter.apply(|part| {
            others.extend(part.downcast_ref::<Column>().map(|column| column.name().to_owned()));
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    let schema = aggregate.input().schema();
    let projected = source.projection();
    let mut names = BTreeSet::new();
    for at in of_keys.difference(&of_others) {
        // The scan may itself compute columns.
        let column = match projected.and_then(|projected| projected.as_ref().get(*at)) {
            Some(projected) => projected.expr.downcast_ref::<Column>().map(|column| column.name().to_owned()),
            None => schema.fields().get(*at).map(|field| field.name().clone()),
        };
        let is_text = schema.fields().get(*at).is_some_and(|field| field.data_type().is_string());
        names.extend(column.filter(|name| is_text && !others.contains(name)));
    }
    Ok(names)
}

impl PhysicalOptimizerRule for ReadDictionaries {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let changed = plan.transform_up(|node| {
            let aggregate = node.downcast_ref::<AggregateExec>();
            let changed = aggregate.map(|aggregate| with_keys_in_scan(aggregate, self.takes_dictionaries));
            Ok(changed.transpose()?.flatten().map_or_else(|| Transformed::no(node), Transformed::yes))
        });
        changed.data()
    }

    fn name(&self) -> &str {
        NAME
    }

    fn schema_check(&self) -> bool {
        true
    }
}
