//! The tables, their keys and indexes.

/// A table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // named as in the specification
pub enum TpchTable {
    Region,
    Nation,
    Supplier,
    Customer,
    Part,
    PartSupp,
    Orders,
    LineItem,
}

impl TpchTable {
    /// All, the smallest first.
    pub const ALL: [TpchTable; 8] = [
        TpchTable::Region,
        TpchTable::Nation,
        TpchTable::Supplier,
        TpchTable::Customer,
        TpchTable::Part,
        TpchTable::PartSupp,
        TpchTable::Orders,
        TpchTable::LineItem,
    ];

    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            TpchTable::Region => "region",
            TpchTable::Nation => "nation",
            TpchTable::Supplier => "supplier",
            TpchTable::Customer => "customer",
            TpchTable::Part => "part",
            TpchTable::PartSupp => "partsupp",
            TpchTable::Orders => "orders",
            TpchTable::LineItem => "lineitem",
        }
    }

    /// Its columns, as the specification (1.4) has them.
    pub fn columns(self) -> &'static str {
        match self {
            TpchTable::Region => {
                "r_regionkey integer NOT NULL, r_name char(25) NOT NULL, r_comment varchar(152)"
            }
            TpchTable::Nation => {
                "n_nationkey integer NOT NULL, n_name char(25) NOT NULL, n_regionkey integer NOT NULL, \
                 n_comment varchar(152)"
            }
            TpchTable::Supplier => {
                "s_suppkey integer NOT NULL, s_name char(25) NOT NULL, s_address varchar(40) NOT NULL, \
                 s_nationkey integer NOT NULL, s_phone char(15) NOT NULL, s_acctbal decimal(15,2) NOT NULL, \
                 s_comment varchar(101) NOT NULL"
            }
            TpchTable::Customer => {
                "c_custkey integer NOT NULL, c_name varchar(25) NOT NULL, c_address varchar(40) NOT NULL, \
                 c_nationkey integer NOT NULL, c_phone char(15) NOT NULL, c_acctbal decimal(15,2) NOT NULL, \
                 c_mktsegment char(10) NOT NULL, c_comment varchar(117) NOT NULL"
            }
            TpchTable::Part => {
                "p_partkey integer NOT NULL, p_name varchar(55) NOT NULL, p_mfgr char(25) NOT NULL, \
                 p_brand char(10) NOT NULL, p_type varchar(25) NOT NULL, p_size integer NOT NULL, \
                 p_container char(10) NOT NULL, p_retailprice decimal(15,2) NOT NULL, p_comment varchar(23) NOT NULL"
            }
            TpchTable::PartSupp => {
                "ps_partkey integer NOT NULL, ps_suppkey integer NOT NULL, ps_availqty integer NOT NULL, \
                 ps_supplycost decimal(15,2) NOT NULL, ps_comment varchar(199) NOT NULL"
            }
            TpchTable::Orders => {
                "o_orderkey bigint NOT NULL, o_custkey integer NOT NULL, o_orderstatus char(1) NOT NULL, \
                 o_totalprice decimal(15,2) NOT NULL, o_orderdate date NOT NULL, o_orderpriority char(15) NOT NULL, \
                 o_clerk char(15) NOT NULL, o_shippriority integer NOT NULL, o_comment varchar(79) NOT NULL"
            }
            TpchTable::LineItem => {
                "l_orderkey bigint NOT NULL, l_partkey integer NOT NULL, l_suppkey integer NOT NULL, \
                 l_linenumber integer NOT NULL, l_quantity decimal(15,2) NOT NULL, \
                 l_extendedprice decimal(15,2) NOT NULL, l_discount decimal(15,2) NOT NULL, \
                 l_tax decimal(15,2) NOT NULL, l_returnflag char(1) NOT NULL, l_linestatus char(1) NOT NULL, \
                 l_shipdate date NOT NULL, l_commitdate date NOT NULL, l_receiptdate date NOT NULL, \
                 l_shipinstruct char(25) NOT NULL, l_shipmode char(10) NOT NULL, l_comment varchar(44) NOT NULL"
            }
        }
    }
}

/// Primary keys.
pub const KEYS: [&str; 8] = [
    "ALTER TABLE region ADD PRIMARY KEY (r_regionkey)",
    "ALTER TABLE nation ADD PRIMARY KEY (n_nationkey)",
    "ALTER TABLE supplier ADD PRIMARY KEY (s_suppkey)",
    "ALTER TABLE customer ADD PRIMARY KEY (c_custkey)",
    "ALTER TABLE part ADD PRIMARY KEY (p_partkey)",
    "ALTER TABLE partsupp ADD PRIMARY KEY (ps_partkey, ps_suppkey)",
    "ALTER TABLE orders ADD PRIMARY KEY (o_orderkey)",
    "ALTER TABLE lineitem ADD PRIMARY KEY (l_orderkey, l_linenumber)",
];

/// Indexes on keys of other tables, without which Q17 and Q20 read lineitem once per part, and
/// the one of Q1's index scan.
pub const INDEXES: [&str; 7] = [
    "CREATE INDEX lineitem_partsupp ON lineitem (l_partkey, l_suppkey)",
    "CREATE INDEX orders_customer ON orders (o_custkey)",
    "CREATE INDEX partsupp_supplier ON partsupp (ps_suppkey)",
    "CREATE INDEX supplier_nation ON supplier (s_nationkey)",
    "CREATE INDEX customer_nation ON customer (c_nationkey)",
    "CREATE INDEX nation_region ON nation (n_regionkey)",
    "CREATE INDEX lineitem_shipdate ON lineitem (l_shipdate)",
];
