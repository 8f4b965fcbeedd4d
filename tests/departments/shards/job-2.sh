# jobgen slurm --site ./site.toml --gpus-per-node shard:4 --ranks-per-node 1 -- train.py
#SBATCH --job-name=jobgen
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=4
#SBATCH --gres=shard:4
#SBATCH --mem=31G
#SBATCH --time=01:00:00
#SBATCH --output=jobgen-%j.log
#SBATCH --open-mode=append
#SBATCH --partition=main
# jobgen: note: the launcher is srun, that of site site
