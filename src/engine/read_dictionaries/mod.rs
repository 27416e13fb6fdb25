//! The physical optimizer rule `read_dictionaries`: class keys are made of the dictionaries of Parquet files.
//!
//! A writer of Parquet keeps each text of a column once, and a number per row. The engine's reader
//! makes a text per row again, even if only a [class key](crate::engine::class_key) looks at it.
//! With this rule, the key is computed in the scan, from the dictionaries as they are in the file.
//!
//! The key is computed in the scan because the engine groups, sorts and repartitions dictionaries slowly; for
//! the same reason `generalize_*` returns plain texts. Two metrics of the scan,
//! `kanon_key_columns_as_dictionaries` and `kanon_key_columns_as_texts`, count these columns per reader: where
//! the second is 0 in EXPLAIN ANALYZE, no text of a class key is made for each row.
//!
//! # Contract
//! The rule changes a GROUP BY by a class key that stands right above a scan of Parquet files, or above
//! one whose rows are dealt out to more threads or filtered. Of rows that a filter removes no key is made,
//! because that may fail. A column of text is read as
//! a dictionary where nothing but class keys looks at it and all its pages in a file are encoded by
//! one; another file may have it as plain text. Keys do not depend on the encoding, so the result is
//! the same. Other plans and formats, and encrypted files, stay as they are. Readers of others are
//! asked as before: only what the metadata say of types is changed.
//!
//! The reader takes the types from the schema in a file's metadata, where [`readers`] writes them;
//! [`adapters`] removes the engine's casts to the types of the table.

mod adapters;
mod readers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::datasource::physical_plan::{
    FileScanConfig, FileScanConfigBuilder, FileSource, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_expr::aggregate::AggregatePhysicalExpressions;
use datafusion::physical_expr::expressions::{Column, case, is_not_null};
use datafusion::physical_expr::{Partitioning, PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode, PhysicalGroupBy};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::repartition::RepartitionExec;

use super::class_key::{is_class_key_function, is_key_function};
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

/// Returns whether an expression is a key of a class, which is never NULL.
fn is_class_key(expr: &Arc<dyn PhysicalExpr>) -> bool {
    expr.downcast_ref::<ScalarFunctionExpr>().is_some_and(|call| is_class_key_function(call.fun()))
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

/// What lies below an aggregate: a scan of Parquet files, perhaps below a repartition, a filter and a
/// projection.
struct Below<'a> {
    projection: Option<&'a ProjectionExec>,
    filter: Option<&'a FilterExec>,
    /// The number of partitions among which rows are dealt out.
    dealt: Option<usize>,
    config: &'a FileScanConfig,
    source: &'a ParquetSource,
    schema: SchemaRef,
}

impl<'a> Below<'a> {
    /// Returns what lies below an aggregate; `None` for anything else.
    fn of(aggregate: &'a AggregateExec) -> Option<Self> {
        let projection = aggregate.input().downcast_ref::<ProjectionExec>();
        let input = projection.map_or(aggregate.input(), ProjectionExec::input);
        let filter = input.downcast_ref::<FilterExec>();
        if filter.is_some_and(|filter| filter.fetch().is_some() || is_volatile(filter.predicate())) {
            return None;
        }
        let input = filter.map_or(input, FilterExec::input);
        let dealt = below_round_robin(input);
        let scan = dealt.map_or(input, |(input, _)| input);
        let (config, source) = parquet_of(scan)?;
        Some(Self {
            projection,
            filter,
            dealt: dealt.map(|(_, partitions)| partitions),
            config,
            source,
            schema: scan.schema(),
        })
    }

    /// Returns a column of the input of the aggregate as an expression of the scan.
    fn column_of_scan(&self, at: usize) -> Option<Arc<dyn PhysicalExpr>> {
        let Some(projection) = self.projection else { return self.below_projection(at) };
        let expr = &projection.expr().get(at)?.expr;
        match expr.downcast_ref::<Column>() {
            Some(column) => self.below_projection(column.index()),
            None => {
                moved(expr, &|at| self.below_projection(at)?.downcast_ref::<Column>().map(Column::index)).ok()
            }
        }
    }

    fn below_projection(&self, at: usize) -> Option<Arc<dyn PhysicalExpr>> {
        let at = match self.filter.and_then(|filter| filter.projection().as_ref()) {
            Some(columns) => *columns.get(at)?,
            None => at,
        };
        Some(Arc::new(Column::new(self.schema.fields().get(at)?.name(), at)))
    }

    /// Returns a key over the input of the aggregate as one over the columns of the scan; `None` if it looks
    /// at a column that is computed above the scan.
    fn key_of_scan(&self, key: &Arc<dyn PhysicalExpr>) -> Result<Option<Arc<dyn PhysicalExpr>>> {
        let column = |at: usize| self.column_of_scan(at)?.downcast_ref::<Column>().map(Column::index);
        let are_columns = columns_of(key)?.into_iter().all(|at| column(at).is_some());
        are_columns.then(|| moved(key, &column)).transpose()
    }

    /// Returns an expression as the scan computes it: NULL for rows that do not pass the filter, because it
    /// may fail on them.
    fn if_it_passes(&self, expr: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        let Some(filter) = self.filter else { return Ok(expr) };
        case(None, vec![(Arc::clone(filter.predicate()), expr)], None)
    }

    /// Returns the names of the columns of text that only class keys look at, which are these expressions
    /// of the scan; `others` are the columns that others look at.
    fn packed(&self, keys: &[Arc<dyn PhysicalExpr>], others: &BTreeSet<usize>) -> Result<BTreeSet<String>> {
        let (mut of_keys, mut of_others) = (BTreeSet::new(), others.clone());
        for key in keys {
            if is_key(key) { &mut of_keys } else { &mut of_others }.extend(columns_of(key)?);
        }
        if let Some(filter) = self.filter {
            of_others.extend(columns_of(filter.predicate())?);
        }
        let mut pruned: BTreeSet<String> = BTreeSet::new();
        if let Some(filter) = self.source.filter() {
            filter.apply(|part| {
                pruned.extend(part.downcast_ref::<Column>().map(|column| column.name().to_owned()));
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        let projected = self.source.projection();
        let mut names = BTreeSet::new();
        for at in of_keys.difference(&of_others) {
            // The scan may itself compute columns.
            let column = match projected.and_then(|projected| projected.as_ref().get(*at)) {
                Some(projected) => {
                    projected.expr.downcast_ref::<Column>().map(|column| column.name().to_owned())
                }
                None => self.schema.fields().get(*at).map(|field| field.name().clone()),
            };
            let is_text = self.schema.fields().get(*at).is_some_and(|field| field.data_type().is_string());
            // The names of folders give the columns of partitions.
            let is_of_file = |name: &String| self.config.file_schema().field_with_name(name).is_ok();
            names.extend(column.filter(|name| is_text && !pruned.contains(name) && is_of_file(name)));
        }
        Ok(names)
    }
}

/// Returns an expression whose columns are those at other places, under the same names.
fn moved(
    expr: &Arc<dyn PhysicalExpr>,
    place: &dyn Fn(usize) -> Option<usize>,
) -> Result<Arc<dyn PhysicalExpr>> {
    let moved = Arc::clone(expr).transform_up(|part| {
        let column = part.downcast_ref::<Column>();
        let Some((column, at)) = column.and_then(|column| Some((column, place(column.index())?))) else {
            return Ok(Transformed::no(part));
        };
        Ok(Transformed::yes(Arc::new(Column::new(column.name(), at))))
    });
    moved.data()
}

/// Returns the indices of the columns that the functions of an aggregate and their conditions look at.
fn columns_of_functions(aggregate: &AggregateExec) -> Result<BTreeSet<usize>> {
    let mut columns = BTreeSet::new();
    for call in aggregate.aggr_expr() {
        let AggregatePhysicalExpressions { args, order_by_exprs } = call.all_expressions();
        for expr in args.iter().chain(&order_by_exprs) {
            columns.extend(columns_of(expr)?);
        }
    }
    for filter in aggregate.filter_expr().iter().flatten() {
        columns.extend(columns_of(filter)?);
    }
    Ok(columns)
}

/// Returns an aggregate whose keys are computed in the scan below it; `None` if it is not of this form.
fn with_keys_in_scan(
    aggregate: &AggregateExec,
    takes_dictionaries: TakesDictionaries,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let group = aggregate.group_expr();
    let is_ours = group.is_single() && group.expr().iter().any(|(key, _)| is_key(key));
    if aggregate.mode().input_mode() != AggregateInputMode::Raw || !is_ours {
        return Ok(None);
    }
    let Some(below) = Below::of(aggregate) else { return Ok(None) };
    let keys = group.expr().iter().map(|(key, _)| below.key_of_scan(key));
    let Some(keys) = keys.collect::<Result<Option<Vec<_>>>>()? else { return Ok(None) };
    // The scan hands out the keys, then what else the aggregate looks at.
    let mut columns: Vec<ProjectionExpr> = Vec::new();
    for (key, (_, name)) in keys.iter().zip(group.expr()) {
        columns.push(ProjectionExpr::new(below.if_it_passes(Arc::clone(key))?, name.clone()));
    }
    let (mut places, mut others) = (BTreeMap::new(), BTreeSet::new());
    for at in columns_of_functions(aggregate)? {
        let Some(column) = below.column_of_scan(at) else { return Ok(None) };
        others.extend(columns_of(&column)?);
        places.insert(at, columns.len());
        let column = if column.is::<Column>() { column } else { below.if_it_passes(column)? };
        columns.push(ProjectionExpr::new(column, format!("kanon_scanned_{at}")));
    }
    let crypto = &below.source.table_parquet_options().crypto;
    let is_encrypted = crypto.file_decryption.is_some() || crypto.factory_id.is_some();
    let packed = below.packed(&keys, &others)?;
    let readers = below.source.parquet_file_reader_factory().filter(|_| !is_encrypted && !packed.is_empty());
    let Some(readers) = readers else { return Ok(None) };
    let readers = DictionaryReaders { readers: Arc::clone(readers), columns: packed };
    let source = below.source.clone().with_parquet_file_reader_factory(Arc::new(readers));
    let adapters = PackedAdapters { adapters: below.config.expr_adapter_factory.clone(), takes_dictionaries };
    let config = FileScanConfigBuilder::from(below.config.clone())
        .with_source(Arc::new(source))
        .with_expr_adapter(Some(Arc::new(adapters)))
        .build();
    let scan: Arc<dyn ExecutionPlan> = DataSourceExec::from_data_source(config);
    let projection = ProjectionExec::try_new(columns, Arc::clone(&scan))?;
    let Some(mut input) = scan.try_swapping_with_projection(&projection)? else { return Ok(None) };
    if let Some(partitions) = below.dealt {
        input = Arc::new(RepartitionExec::try_new(input, Partitioning::RoundRobinBatch(partitions))?);
    }
    if below.filter.is_some() {
        let Some(at) = keys.iter().position(is_class_key) else { return Ok(None) };
        let key = Column::new(input.schema().field(at).name(), at);
        input = Arc::new(FilterExec::try_new(is_not_null(Arc::new(key))?, input)?);
    }
    above(aggregate, input, &places)
}

/// Returns the aggregate over a plan whose first columns are its keys, and whose other columns are at
/// these places.
fn above(
    aggregate: &AggregateExec,
    input: Arc<dyn ExecutionPlan>,
    places: &BTreeMap<usize, usize>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let place = |at: usize| places.get(&at).copied();
    let all_moved = |all: &[Arc<dyn PhysicalExpr>]| {
        all.iter().map(|expr| moved(expr, &place)).collect::<Result<Vec<_>>>()
    };
    let keys = aggregate.group_expr().expr().iter().enumerate();
    let keys =
        keys.map(|(at, (_, name))| (Arc::new(Column::new(name, at)) as Arc<dyn PhysicalExpr>, name.clone()));
    let mut functions = Vec::with_capacity(aggregate.aggr_expr().len());
    for call in aggregate.aggr_expr() {
        let AggregatePhysicalExpressions { args, order_by_exprs } = call.all_expressions();
        let Some(moved) = call.with_new_expressions(all_moved(&args)?, all_moved(&order_by_exprs)?) else {
            return Ok(None);
        };
        functions.push(Arc::new(moved));
    }
    let filters = aggregate.filter_expr().iter();
    let filters = filters.map(|filter| filter.as_ref().map(|filter| moved(filter, &place)).transpose());
    let changed = AggregateExec::try_new(
        *aggregate.mode(),
        PhysicalGroupBy::new_single(keys.collect()),
        functions,
        filters.collect::<Result<Vec<_>>>()?,
        Arc::clone(&input),
        input.schema(),
    )?;
    Ok(Some(Arc::new(changed.with_limit_options(aggregate.limit_options()))))
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
