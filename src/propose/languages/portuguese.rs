//! Portuguese.

use super::Words;

pub(super) const WORDS: Words = Words {
    person: "id|num|numero|no|nr|cod|codigo|identificador paciente|pessoa|utente|cliente, \
             id|num|numero|no|cod|codigo segurado|beneficiario|aluno|estudante, \
             id|num|numero|no|cod|codigo participante|usuario|individuo|socio|associado, \
             id|num|numero|no|cod|codigo colaborador|funcionario, \
             paciente|pessoa|utente|cliente|usuario|aluno id, num|id|cod pac, cpf, cnh, niss, =RG, \
             num|numero rg|cns|pis|contribuinte|apolice|carteira|carteirinha, cns paciente, \
             cartao sus|saude|cidadao, seguranca social, prontuario*, contribuinte, carteirinha, \
             titulo eleitor, bilhete identidade, matricula, passaporte*, carta conducao, carteira motorista",
    person_alone: "paciente, utente, segurado, beneficiario, cliente, participante, pessoa",
    contact: "correio eletronico|electronico, telefone*, tel, telemovel*, celular, num|numero conta|cartao, \
              conta bancaria|corrente, cartao credito, endereco ip, placa veiculo",
    person_name: "sobrenome*, apelido*, nome completo|social|proprio, \
                  nome paciente|utente|cliente|usuario|aluno, nome mae|pai|conjuge|medico|contato, \
                  primeiro|ultimo nome",
    birth_place: "pais|local|lugar|cidade|municipio|estado|uf|distrito|concelho nascimento, cod mun nasc, \
                  naturalidade",
    birth: "nascimento*, nasc, data|dt|ano|mes nascimento|nasc",
    postal: "=cep, cep residencia|paciente|cliente|endereco, cod postal",
    sex: "sexo, genero",
    race: "raca, raca cor, etni*, cor pele",
    age: "idade, idades, faixa|grupo etaria|etario",
    place: "cidade, cidades, municipio, concelho, freguesia, distrito, bairro, localidade, pais, regiao, \
            regioes, =estado, estado residencia, =uf, sigla uf, uf residencia, cod mun res, local residencia",
    family: "estado|est civil, est civ, situacao conjugal|familiar, filho, filhos, num|numero filhos, \
             agregado familiar, conjuge*, dependentes, tamanho familia",
    education: "educac*, escolar, escolaridade, grau instrucao|academico, nivel ensino|escolar|instrucao, \
                ensino, escola, universidade, habilitacoes literarias",
    occupation: "ocupacao*, ocupacoes, profissao, profissoes, emprego, empregador, trabalho, \
                 situacao profissional, atividade economica|profissional, desempreg*, =CBO",
    nationality: "nacionalidade*, cidadania*, idioma, idiomas, lingua materna, imigra*",
    religion: "religia*",
    event: "data|dt internacao|alta|admissao|entrada|saida|visita|consulta|atendimento, \
            data|dt obito|morte|falecimento|cirurgia|procedimento, data compra|contratacao|viagem, \
            =internacao, =obito, falecid*, falecimento*, agendamento*",
    notes: "comentario*, observac*, anotac*, texto livre, =notas, notas clinicas",
    health: "doenca*, patologia*, sintoma*, tratamento*, medicamento*, medicac*, farmaco, farmacos, \
             receita medica, alergi*, gravidez, gestante, vih, sida, causa morte|obito|bas|basica, \
             motivo internacao|consulta, comorbidade*, procedimento*, grupo|tipo sanguineo, codigo|cod cid, \
             cid principal|secundari*|obito|causa",
    money: "renda, salario*, rendimento mensal|anual|familiar, rendimentos, divida*",
    private: "partido politico, opiniao|orientacao politica, filiacao partidaria, sindicato*, sindical*, \
              condenac*, antecedentes criminais",
    address: "endereco*, morada, moradas, rua, logradouro*, domicilio",
    name: "nome, nomes",
    record: "num|numero|no|nr|cod atendimento|internacao|processo|episodio|consulta, \
             num|numero|no|nr|cod registro|registo|pedido|linha, num|numero aih|fatura|factura, =AIH, \
             nota fiscal, identificador, =chave",
    counts: "tipo, quantidade, qtd, qtde",
    links: "de, do, da, dos, das, ao",
    missing: "#valor!, s/i, n/i, n.i., desconhecido, desconhecida, ignorado, ignorada, não informado, não informada, nao informado, \
              não disponível, nao disponivel, não consta, não se aplica, sem informação, sem dados, em branco",
};

#[cfg(test)]
mod tests {
    use super::super::tests::mean;

    #[test]
    fn what_portuguese_names_mean() {
        mean(
            "a person's number",
            "id_paciente, CPF, NIF, prontuário, Número de utente, num_utente, cartão_sus, matrícula",
        );
        mean(
            "a person's number",
            "cod_cliente, Segurança Social, n.º de contribuinte, numero_beneficiario, RG",
        );
        mean("a record number", "num_atendimento, número do processo, nota_fiscal, id_consulta, AIH");
        mean("a person's name", "sobrenome, apelido, nome_completo, Nome da mãe, nome_paciente");
        mean("a name", "nome, NOME");
        mean("a place of birth", "naturalidade, local_nascimento, país de nascimento");
        mean(
            "a date of birth",
            "data_nascimento, Data de nascimento, DtNasc, dt_nascimento, ano_nascimento, nasc",
        );
        mean("a postal code", "CEP, cep, código postal, cod_postal");
        mean("sex or gender", "sexo, género, gênero");
        mean("race or origin", "raça, raca_cor, etnia");
        mean("an age", "idade, idade_anos, faixa etária");
        mean("a place", "cidade, município, bairro, distrito, concelho, freguesia, UF, estado, país, região");
        mean("family and marriage", "estado_civil, filhos, num_filhos, agregado familiar");
        mean("education", "escolaridade, educação, grau_instrucao, nível de ensino");
        mean("an occupation", "profissão, ocupação, emprego, situação profissional");
        mean("nationality or language", "nacionalidade, idioma, cidadania");
        mean("a religion, which can be sensitive as well", "religião, religiao");
        let event = "the date of an event that others may have witnessed";
        mean(event, "data_internacao, Data de internação, data_alta, data_obito, dt_entrada, falecido");
        mean("free text", "observações, observacoes, comentários, notas");
        mean("health data", "diagnóstico, doença, CID_principal, medicação, causa_obito, gravidez");
        mean("financial data", "renda, salário, rendimento_mensal, dívidas");
        mean("private life", "orientação sexual, filiação partidária, sindicato");
        mean("an address", "endereço, morada, rua, logradouro");
        mean("contact or payment data", "telefone, telemóvel, celular, correio eletrónico, conta_bancaria");
        mean("", "data, data_criacao, peso, altura, valor, cor, tipo_id, quantidade, rendimento");
    }
}
