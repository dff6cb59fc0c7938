//! Where a row and its JSON differ in shape.

/// The question's columns stand side by side in the row and are all set or all null.
pub(super) mod question_columns {
    use super::super::QuestionPart;
    use crate::ids::PendingId;
    use crate::object::{AnswerEntry, Question as QuestionSpec, QuestionStatus};
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    #[derive(Default, Serialize, Deserialize)]
    struct Columns {
        pending_id: Option<PendingId>,
        question_index: Option<i32>,
        question: Option<QuestionSpec>,
        question_status: Option<QuestionStatus>,
        response: Option<AnswerEntry>,
    }

    pub(in crate::session::rows) fn serialize<S: Serializer>(
        part: &Option<QuestionPart>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let columns = part.as_ref().map_or_else(Columns::default, |part| Columns {
            pending_id: Some(part.pending_id),
            question_index: Some(part.question_index),
            question: Some(part.question.clone()),
            question_status: Some(part.question_status),
            response: part.response.clone(),
        });
        columns.serialize(serializer)
    }

    pub(in crate::session::rows) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<QuestionPart>, D::Error> {
        let Columns { pending_id, question_index, question, question_status, response } =
            Columns::deserialize(deserializer)?;
        let Some(pending_id) = pending_id else { return Ok(None) };
        let (Some(question_index), Some(question), Some(question_status)) = (question_index, question, question_status)
        else {
            return Err(de::Error::custom("a question's columns are all set or all null"));
        };
        Ok(Some(QuestionPart { pending_id, question_index, question, question_status, response }))
    }
}

/// A map of rows is a list of rows in the database's answer.
pub(super) mod keyed {
    use super::super::Row;
    use serde::de::DeserializeOwned;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::collections::BTreeMap;

    pub(in crate::session::rows) fn serialize<R: Row + Serialize, S: Serializer>(
        rows: &BTreeMap<R::Key, R>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(rows.values())
    }

    pub(in crate::session::rows) fn deserialize<'de, R: Row + DeserializeOwned, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<R::Key, R>, D::Error> {
        Ok(Vec::<R>::deserialize(deserializer)?.into_iter().map(|row| (row.key(), row)).collect())
    }
}
