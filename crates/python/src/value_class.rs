//! Python classes around one value: frozen, equal and hashed by the value, their own copies.
//!
//! | macro | classes | methods it adds |
//! |---|---|---|
//! | `value_class` | all | `__copy__`, `__deepcopy__` |
//! | `named_term` | terms that are a text | `value`, and how they are shown, matched and pickled |
//! | `format_class` | formats | their names, how they are found and shown |
//!
//! A class takes its other methods in braces. All are in one block, because pyo3 takes only one per
//! class.

/// A class with its own methods. An `ordered` one can be compared by `<` in Python.
macro_rules! value_class {
    (
        $(#[$($doc:tt)*])+
        $name:tt: $class:ident $(($inner:ty))?, derives [$($trait:ident),*], ordered { $($own:tt)* }
    ) => {
        $(#[$($doc)*])+
        #[pyclass(name = $name, module = "snowmelt", frozen, eq, ord, hash, from_py_object)]
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash $(, $trait)*)]
        pub struct $class $((pub $inner))?;

        $crate::value_class::value_class! { methods of $class { $($own)* } }
    };
    (
        $(#[$($doc:tt)*])+
        $name:tt: $class:ident $(($inner:ty))?, derives [$($trait:ident),*], unordered { $($own:tt)* }
    ) => {
        $(#[$($doc)*])+
        #[pyclass(name = $name, module = "snowmelt", frozen, eq, hash, from_py_object)]
        #[derive(Clone, PartialEq, Eq, Hash $(, $trait)*)]
        pub struct $class $((pub $inner))?;

        $crate::value_class::value_class! { methods of $class { $($own)* } }
    };
    (methods of $class:ident { $($own:tt)* }) => {
        #[pymethods]
        impl $class {
            $($own)*

            fn __copy__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
                slf
            }

            fn __deepcopy__<'py>(slf: PyRef<'py, Self>, _memo: &Bound<'py, PyAny>) -> PyRef<'py, Self> {
                slf
            }
        }
    };
}

/// A term that is a text. The documentation of `value` stands before its methods.
macro_rules! named_term {
    (
        $(#[$($doc:tt)*])+
        $name:tt: $class:ident($inner:ty), $order:ident
        $(#[$($value_doc:tt)*])+
        value
        { $($own:tt)* }
    ) => {
        $crate::value_class::value_class! {
            $(#[$($doc)*])+
            $name: $class($inner), derives [], $order
            {
                #[classattr]
                fn __match_args__() -> (&'static str,) {
                    ("value",)
                }

                $($own)*

                $(#[$($value_doc)*])+
                #[getter]
                fn value(&self) -> &str {
                    self.0.as_str()
                }

                fn __str__(&self) -> String {
                    self.0.to_string()
                }

                fn __repr__(&self) -> String {
                    format!(concat!("<", $name, " value={}>"), self.0.as_str())
                }

                fn __getnewargs__(&self) -> (&str,) {
                    (self.0.as_str(),)
                }
            }
        }
    };
}

/// A format.
macro_rules! format_class {
    (
        $(#[$($doc:tt)*])+
        $name:tt: $class:ident($inner:ty)
        { $($own:tt)* }
    ) => {
        $crate::value_class::value_class! {
            $(#[$($doc)*])+
            $name: $class($inner), derives [Copy], unordered
            {
                $($own)*

                /// Its canonical IRI.
                #[getter]
                fn iri(&self) -> &'static str {
                    self.0.iri()
                }

                /// Its media type.
                #[getter]
                fn media_type(&self) -> &'static str {
                    self.0.media_type()
                }

                /// The usual extension of its files, without dot.
                #[getter]
                fn file_extension(&self) -> &'static str {
                    self.0.file_extension()
                }

                /// Its name.
                #[getter]
                fn name(&self) -> &'static str {
                    self.0.name()
                }

                /// The format of a media type; None if it is unknown.
                #[staticmethod]
                fn from_media_type(media_type: &str) -> Option<Self> {
                    <$inner>::from_media_type(media_type).map(Self)
                }

                /// The format of a file's extension; None if it is unknown.
                #[staticmethod]
                fn from_extension(extension: &str) -> Option<Self> {
                    <$inner>::from_extension(extension).map(Self)
                }

                fn __str__(&self) -> String {
                    self.0.to_string()
                }

                fn __repr__(&self) -> String {
                    format!(concat!("<", $name, " {}>"), self.0.name())
                }
            }
        }
    };
}

pub(crate) use {format_class, named_term, value_class};
